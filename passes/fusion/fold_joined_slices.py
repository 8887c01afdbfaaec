"""Slices of one tensor that are joined at even distances become one access to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import identity_region, is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, coefficient_of
from mlirt.dialects.tensor_types import dims, element_of, with_dims
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FoldJoinedSlicesPass(RulePass):
    """Read a tensor once where a concatenation joins slices of it that lie at even distances.

    Exporters write windows that are unfolded, and pixels that become channels, as a slice for each place. The slices
    have the same lengths, and nobody else reads them. Where slices of several elements do not follow each other in the
    tensor, the result is a view of a tensor with an axis for the slices.

    Before:

        %a = fused.pointwise %x [d0, 4*d1] : (tensor<2x8xf32>) -> tensor<2x2x1xf32>
        %b = fused.pointwise %x [d0, 4*d1 + 1] : (tensor<2x8xf32>) -> tensor<2x2x1xf32>
        %y = fused.concat %a, %b {axis = 2} : (tensor<2x2x1xf32>, tensor<2x2x1xf32>) -> tensor<2x2x2xf32>

    After:

        %y = fused.pointwise %x [d0, 4*d1 + d2] : (tensor<2x8xf32>) -> tensor<2x2x2xf32>
    """

    name = "fold-joined-slices"

    @rule(op(ConcatOp).named("joined"))
    def fold(self, m: Match, joined: ConcatOp) -> Outcome:
        slices = [_slice(value) for value in joined.inputs]
        known = [one for one in slices if one is not None]
        if len(known) < max(2, len(slices)) or len({one.inputs[0] for one in known}) > 1:
            return None
        axis, space = joined.axis.value.data, dims(known[0].outputs[0].type)
        apart = _distances([next(iter(one.access)).indices() for one in known])
        if apart is None or any(dims(one.outputs[0].type) != space for one in known):
            return "the slices have other lengths, or do not lie at even distances"
        m.drop(*known)
        first, whole = next(iter(known[0].access)).indices(), dims(joined.output.type)
        if space[axis] == 1:
            places: dict[str, Dim] = {f"d{axis}": 0}
            access = [index + step * iteration(axis) for index, step in zip(_moved(first, places), apart, strict=True)]
            return m.insert(_read(known[0].inputs[0], access, whole), *known, joined)
        if all(
            coefficient_of(index, f"d{axis}") * space[axis] == step for index, step in zip(first, apart, strict=True)
        ):
            return m.insert(_read(known[0].inputs[0], first, whole), *known, joined)
        behind = {f"d{place}": iteration(place + 1) for place in range(axis, len(space))}
        access = [index + step * iteration(axis) for index, step in zip(_moved(first, behind), apart, strict=True)]
        shape = (*space[:axis], len(known), *space[axis:])
        read = m.insert(_read(known[0].inputs[0], access, shape), *known, joined)
        return m.insert(ViewOp(read.outputs[0], joined.output.type), *known, joined)


def _slice(value: SSAValue) -> PointwiseOp | None:
    """What only moves elements of one tensor to a value that nobody else reads."""
    owner = value.owner
    if not isinstance(owner, PointwiseOp) or len(owner.inputs) != 1 or len(owner.outputs) != 1:
        return None
    return owner if is_identity(owner.body) and len(list(value.uses)) == 1 else None


def _distances(accesses: Sequence[Sequence[Dim]]) -> list[int] | None:
    """How far each index of a slice is from that of the slice before, where that is one number for all."""
    first, second, *_ = accesses
    steps = [after - before for before, after in zip(first, second, strict=True)]
    if not all(isinstance(step, int) for step in steps):
        return None
    for place, indices in enumerate(accesses):
        if any(index != start + place * step for index, start, step in zip(indices, first, steps, strict=True)):
            return None
    return [step for step in steps if isinstance(step, int)]


def _moved(indices: Sequence[Dim], places: dict[str, Dim]) -> Sequence[Dim]:
    return AccessAttr.of(indices).substituted(places).indices()


def _read(source: SSAValue, access: Sequence[Dim], shape: Sequence[Dim]) -> PointwiseOp:
    """A tensor of what an access reads, without a place."""
    body = identity_region(element_of(source.type))
    return PointwiseOp([source], [AccessAttr.of(access)], [with_dims(source.type, shape)], body)


__all__ = ["FoldJoinedSlicesPass"]
