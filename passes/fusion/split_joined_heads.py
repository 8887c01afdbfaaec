"""Grouped-query attention: heads that share their keys with others get a dimension for their group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import IndexOp, is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.symbolic import Dim, substitute, symbols
from mlirt.dialects.tensor_types import dims, with_dims
from mlirt.passes.fusion.view_composition import joined_axes, partly_joined_axes
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class SplitJoinedHeadsPass(RulePass):
    """Split a batch dimension of attention in two where an operand is a view that joins two axes into it.

    Keys and values that several heads share (grouped queries) are repeated along an axis of its own, which is then
    joined with that of the heads. With a dimension for either, attention can read what was repeated. So can it read a
    slice of a tensor that has queries, keys and values side by side where sequences and heads are one batch dimension
    (2 sequences of 128 columns viewed as 8 heads of 32).

    Before:

        %k = fused.view %r : (tensor<1x2x3x64x32xf16>) -> tensor<1x6x64x32xf16>
        %y = fused.attention %q, %k, .. [["d0", "d1", "d2", "d4"], ["d0", "d1", "d3", "d4"], ..] : tensor<1x6x64x32xf16>

    After:

        %s = fused.attention %q, %k, .. [["d0", "3*d1 + d2", "d3", "d5"], ["d0", "3*d1 + d2", "d4", "d5"], ..]
             : tensor<1x2x3x64x32xf16>
        %y = fused.view %s : (tensor<1x2x3x64x32xf16>) -> tensor<1x6x64x32xf16>
    """

    name = "split-joined-heads"

    @rule(op(AttentionOp).named("attention"))
    def split(self, m: Match, attention: AttentionOp) -> Outcome:
        if (joined := _joined(attention)) is None:
            return None
        made = m.insert(_split(attention, *joined))
        return m.insert(ViewOp(made.output, attention.output.type))


def _joined(attention: AttentionOp) -> tuple[int, Dim, Dim] | None:
    """A batch dimension that the view of an operand joins, and the lengths of its two parts."""
    for position, (value, access) in enumerate(zip(attention.operands, attention.access, strict=True)):
        view = value.owner
        if not isinstance(view, ViewOp):
            continue
        sizes = dims(view.input.type), dims(value.type)
        joined = joined_axes(*sizes) if 0 < position < 3 else {}
        if _is_copy(view.input) and position < 3:  # others are read through their view as they lie
            joined |= partly_joined_axes(*sizes)
        for axis, (outer, inner) in joined.items():
            index = access.indices()[axis]
            for batch in range(attention.batch_rank):
                if index == iteration(batch) and not _asks_for(attention, batch):
                    return batch, outer, inner
    return None


def _is_copy(value: SSAValue) -> bool:
    return isinstance(value.owner, PointwiseOp) and len(value.owner.inputs) == 1 and is_identity(value.owner.body)


def _asks_for(attention: AttentionOp, axis: int) -> bool:
    """Whether the score depends on the position along a dimension."""
    return any(isinstance(inner, IndexOp) and inner.dim.value.data == axis for inner in attention.score.block.ops)


def _split(attention: AttentionOp, batch: int, outer: Dim, inner: Dim) -> AttentionOp:
    axes = len(attention.axes()) + 2
    names: dict[str, Dim] = {f"d{axis}": iteration(axis + (axis > batch)) for axis in range(axes)}
    names[f"d{batch}"] = iteration(batch) * inner + iteration(batch + 1)
    place = attention.axes().index(batch)
    sizes, order = list(dims(attention.output.type)), [axis + (axis > batch) for axis in attention.axes()]
    sizes[place : place + 1], order[place : place + 1] = [outer, inner], [batch, batch + 1]
    for index in attention.score.block.ops:
        if isinstance(index, IndexOp) and index.dim.value.data > batch:
            index.properties["dim"] = IntegerAttr(index.dim.value.data + 1, i64)
    properties = {
        **attention.properties,
        "access": ArrayAttr(AccessAttr.of(_renamed(access.indices(), names)) for access in attention.access),
        "order": integer_list(order),
    }
    if attention.last_key is not None:
        properties["last_key"] = AccessAttr.of(_renamed(attention.last_key.indices(), names))
    properties.pop("operandSegmentSizes", None)
    return AttentionOp.build(
        operands=[*attention.operands[:3], list(attention.extras)],
        properties=properties,
        result_types=[with_dims(attention.output.type, sizes)],
        regions=attention.detached_regions(),
    )


def _renamed(indices: Sequence[Dim], names: dict[str, Dim]) -> list[Dim]:
    """Indices with other iteration dimensions; all are renamed at once."""
    return [substitute(index, {name: names[name] for name in symbols(index) if name in names}) for index in indices]
