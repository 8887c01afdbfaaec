"""Biases that a layer sums for all pairs of queries and keys are summed in attention."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims
from mlirt.passes.fusion.access_composition import compose
from mlirt.passes.fusion.scalar_bodies import prepend, tidy, work
from mlirt.passes.fusion.view_composition import joined_axes, through_view
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

_HEADS = 3  # operands before the extras


@dataclass(frozen=True)
class _Source:
    """How attention reads the result of a layer: index by index, and the widths of pictures that these need."""

    layer: PointwiseOp
    at: tuple[Dim, ...]
    widths: tuple[int, int] | None


@dataclass(frozen=True)
class FuseAttentionBiasesPass(RulePass):
    """Let attention read the terms of a bias, instead of a tensor with an element for each query and key.

    Decomposed relative positions are such: a term for the rows of a picture and one for its columns, each broadcast
    along the other. The operands of the layer have at most one element for `least_saved` of its result, its body takes
    at most `most_work` instructions, and attention alone reads it. Where a view joins rows and columns to queries and
    keys, attention counts these by `widths`, if rows of keys are multiples of `multiple`, as kernels have their keys.

    Before:

        %b = fused.pointwise %r, %c ["d0", "d1", "d2", "d3"], ["d0", "d1", "d2", "d4"] { r + c } : tensor<2x8x8x8x8xf16>
        %v = fused.view %b : tensor<2x64x64xf16>
        %y = fused.attention %q, %k, %v, %v ["d0", "d1", "d2"] { s + v }

    After:

        %y = fused.attention %q, %k, %v, %r, %c ["d0", "d5", "d6", "d7"], ["d0", "d5", "d6", "d8"] { s + (r + c) }
    """

    name = "fuse-attention-biases"

    least_saved: int = option(4, at_least=1)
    most_work: int = option(16, at_least=1)
    multiple: int = option(8, at_least=1)

    @rule(op(AttentionOp).named("attention"))
    def fuse(self, m: Match, attention: AttentionOp) -> Outcome:
        for position in range(_HEADS, len(attention.operands)):
            source = self._source(attention, position)
            if source is None:
                continue
            if work(source.layer.body) > self.most_work:
                return f"the body of {source.layer.name} takes too many instructions for each score"
            m.note = "the terms of a bias are read where they lie"
            m.insert(made := _with_terms(attention, position, source), attention, source.layer)
            return made
        return None

    def _source(self, attention: AttentionOp, position: int) -> _Source | None:
        value, access = attention.operands[position], attention.access.data[position]
        layer, view = _layer_of(value)
        if layer is None or not self._saves(layer):
            return None
        if view is None:
            return _Source(layer, access.indices(), attention.picture_widths())
        before, after = dims(view.input.type), dims(view.output.type)
        plain = through_view(before, after, access.indices(), _extents(attention))
        if plain is not None:
            return _Source(layer, plain, attention.picture_widths())
        split = self._by_picture(attention, access, joined_axes(before, after))
        if split is None:
            return None
        at, widths, extents = split
        found = through_view(before, after, at, extents)
        return None if found is None else _Source(layer, found, widths)

    def _saves(self, layer: PointwiseOp) -> bool:
        """Whether the operands are much smaller than the result."""
        result = _elements(layer.outputs[0])
        operands = [_elements(value) for value in layer.inputs]
        if result is None or any(count is None for count in operands) or not operands:
            return False
        asks_for_place = any(isinstance(one, IndexOp) for one in layer.body.block.ops)
        return not asks_for_place and sum(count or 0 for count in operands) * self.least_saved <= result

    def _by_picture(
        self, attention: AttentionOp, access: AccessAttr, joined: Mapping[int, tuple[Dim, Dim]]
    ) -> tuple[list[Dim], tuple[int, int], dict[str, Dim]] | None:
        """The indices by rows and columns of queries and keys, the widths of these, and how far all indices go."""
        first, extents, at = attention.batch_rank, _extents(attention), list(access.indices())
        widths: list[Dim] = [1, 1]
        known = attention.picture_widths()
        for side in range(2):
            axis = next((axis for axis in joined if at[axis] == iteration(first + side)), None)
            if axis is None:
                widths[side] = 1 if known is None else known[side]
                continue
            count, width = joined[axis]
            row, column = (first + 4 + 2 * side + part for part in range(2))
            at[axis] = iteration(row) * width + iteration(column)
            widths[side] = width
            extents |= {f"d{row}": count, f"d{column}": width}
        lengths = (attention.queries, attention.keys)
        numbers = [width for width in widths if isinstance(width, int)]
        if len(numbers) != len(widths) or not all(isinstance(length, int) for length in lengths):
            return None
        if numbers[1] != 1 and numbers[1] % self.multiple:
            return None
        found = (numbers[0], numbers[1])
        return (at, found, extents) if known in (None, found) else None


def _layer_of(value: SSAValue) -> tuple[PointwiseOp | None, ViewOp | None]:
    """The layer that computes a bias for its only reader, and the view between them, if there is one."""
    view = value.owner if isinstance(value.owner, ViewOp) else None
    source = value if view is None else view.input
    layer = source.owner
    if not isinstance(layer, PointwiseOp) or len(layer.outputs) != 1:
        return None, None
    return (layer, view) if value.has_one_use() and source.has_one_use() else (None, None)


def _extents(attention: AttentionOp) -> dict[str, Dim]:
    space = (*attention.batch, attention.queries, attention.keys, attention.depth, attention.columns)
    return {f"d{axis}": extent for axis, extent in enumerate(space)}


def _elements(value: SSAValue) -> int | None:
    sizes = dims(value.type)
    numbers = [size for size in sizes if isinstance(size, int)]
    return prod(numbers) if len(numbers) == len(sizes) else None


def _with_terms(attention: AttentionOp, position: int, source: _Source) -> AttentionOp:
    """Attention that reads the operands of a layer, and computes the layer's result for each score."""
    layer, place = source.layer, position - _HEADS
    extras, access = list(attention.extras), list(attention.access)
    reads = AccessAttr.of(source.at)
    extras[place : place + 1] = list(layer.inputs)
    access[position : position + 1] = [compose(one, reads) for one in layer.access]
    properties = {**attention.properties, "access": ArrayAttr(access)}
    if source.widths is not None:
        properties["widths"] = integer_list(source.widths)
    properties.pop("operandSegmentSizes", None)
    regions = attention.detached_regions()
    score = regions[0]
    assert isinstance(score, Region)
    block = score.block
    old = block.args[1 + place]
    new = [block.insert_arg(arg.type, 1 + place + number) for number, arg in enumerate(layer.body.block.args)]
    old.replace_all_uses_with(prepend(block, layer.body, new, source.at))
    block.erase_arg(old)
    tidy(block)
    return AttentionOp.build(
        operands=[*attention.operands[:_HEADS], extras],
        properties=properties,
        attributes=dict(attention.attributes),
        result_types=[attention.output.type],
        regions=regions,
    )


__all__ = ["FuseAttentionBiasesPass"]
