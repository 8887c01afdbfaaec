"""Grouped-query attention: heads that share their keys with others get a dimension for their group."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, i64
from xdsl.passes import ModulePass

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.symbolic import Dim, substitute, symbols
from mlirt.dialects.tensor_types import dims, with_dims
from mlirt.passes.fusion.view_composition import joined_axes
from mlirt.passes.remarks import applied


@dataclass(frozen=True)
class SplitJoinedHeadsPass(ModulePass):
    """Split a batch dimension of attention in two where an operand is a view that joins two axes into it.

    Keys and values that several heads share (grouped queries) are repeated along an axis of its own, which is then
    joined with that of the heads. With a dimension for either, attention can read what was repeated.

    Before:

        %k = fused.view %r : (tensor<1x2x3x64x32xf16>) -> tensor<1x6x64x32xf16>
        %y = fused.attention %q, %k, .. [["d0", "d1", "d2", "d4"], ["d0", "d1", "d3", "d4"], ..] : tensor<1x6x64x32xf16>

    After:

        %s = fused.attention %q, %k, .. [["d0", "3*d1 + d2", "d3", "d5"], ["d0", "3*d1 + d2", "d4", "d5"], ..]
             : tensor<1x2x3x64x32xf16>
        %y = fused.view %s : (tensor<1x2x3x64x32xf16>) -> tensor<1x6x64x32xf16>
    """

    name = "split-joined-heads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in list(op.walk()):
            found = _joined(inner) if isinstance(inner, AttentionOp) else None
            while isinstance(inner, AttentionOp) and found is not None:
                inner = _split(inner, *found)
                found = _joined(inner)


def _joined(op: AttentionOp) -> tuple[int, Dim, Dim] | None:
    """A batch dimension that a view of keys or values joins, and the lengths of its two parts."""
    for value, access in list(zip(op.operands, op.access, strict=True))[1:3]:
        view = value.owner
        if not isinstance(view, ViewOp):
            continue
        for axis, (outer, inner) in joined_axes(dims(view.input.type), dims(value.type)).items():
            index = access.indices()[axis]
            for batch in range(op.batch_rank):
                if index == iteration(batch) and not _asks_for(op, batch):
                    return batch, outer, inner
    return None


def _asks_for(op: AttentionOp, axis: int) -> bool:
    """Whether the score depends on the position along a dimension."""
    return any(isinstance(inner, IndexOp) and inner.dim.value.data == axis for inner in op.score.block.ops)


def _split(op: AttentionOp, batch: int, outer: Dim, inner: Dim) -> AttentionOp:
    axes = len(op.axes()) + 2
    names: dict[str, Dim] = {f"d{axis}": iteration(axis + (axis > batch)) for axis in range(axes)}
    names[f"d{batch}"] = iteration(batch) * inner + iteration(batch + 1)
    place = op.axes().index(batch)
    sizes, order = list(dims(op.output.type)), [axis + (axis > batch) for axis in op.axes()]
    sizes[place : place + 1], order[place : place + 1] = [outer, inner], [batch, batch + 1]
    for index in op.score.block.ops:
        if isinstance(index, IndexOp) and index.dim.value.data > batch:
            index.properties["dim"] = IntegerAttr(index.dim.value.data + 1, i64)
    properties = {
        **op.properties,
        "access": ArrayAttr(AccessAttr.of(_renamed(access.indices(), names)) for access in op.access),
        "order": integer_list(order),
    }
    if op.last_key is not None:
        properties["last_key"] = AccessAttr.of(_renamed(op.last_key.indices(), names))
    properties.pop("operandSegmentSizes", None)
    made = AttentionOp.build(
        operands=[*op.operands[:3], list(op.extras)],
        properties=properties,
        result_types=[with_dims(op.output.type, sizes)],
        regions=[op.detach_region(op.score)],
    )
    view = ViewOp(made.output, op.output.type)
    block = op.parent
    assert block is not None
    for new in (made, view):
        new.location = op.location
        block.insert_op_before(new, op)
    applied(made)
    view.output.name_hint = op.output.name_hint
    op.output.replace_all_uses_with(view.output)
    block.erase_op(op)
    return made


def _renamed(indices: Sequence[Dim], names: dict[str, Dim]) -> list[Dim]:
    """Indices with other iteration dimensions; all are renamed at once."""
    return [substitute(index, {name: names[name] for name in symbols(index) if name in names}) for index in indices]
