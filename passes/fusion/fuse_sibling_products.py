"""Horizontal fusion: products of one tensor with several matrices become one product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.locations import fuse, name_of
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.symbolic import symbols
from mlirt.dialects.tensor_types import dims, element_of, rank, with_dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.remarks import applied, missed


@dataclass(frozen=True)
class FuseSiblingProductsPass(ModulePass):
    """Join products of one tensor with constant matrices, where attention reads them: it finds its columns by itself.

    So queries, keys and values are one product. The epilogues are equal except for constants with one element per
    column, which are joined like the matrices. Products that anything but attention reads stay: other readers would
    have to copy their columns first.

    Before:

        %q = fused.matmul %x, %u, %a { acc + a } : tensor<1x64x32xf16>
        %k = fused.matmul %x, %v, %b { acc + b } : tensor<1x64x32xf16>
        %y = fused.attention %q, %k, .. [["d0", "d2", "d4"], ["d0", "d3", "d4"], ..]

    After:

        %j = fused.matmul %x, %uv, %ab { acc + ab } : tensor<1x64x64xf16>
        %y = fused.attention %j, %j, .. [["d0", "d2", "d4"], ["d0", "d3", "d4 + 32"], ..]
    """

    name = "fuse-sibling-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for siblings in _families(block):
                _join(siblings, ctx)


def _families(block: Block) -> list[list[MatmulOp]]:
    """Products that can be joined, in order."""
    families: list[list[MatmulOp]] = []
    of_operand: dict[SSAValue, list[list[MatmulOp]]] = {}
    for op in block.ops:
        if not isinstance(op, MatmulOp):
            continue
        if not _may_join(op):
            missed(op, "not attention alone reads it, or its matrix is not one constant")
            continue
        near = of_operand.setdefault(op.lhs, [])
        family = next((one for one in near if _fit(one[0], op)), None)
        if family is None:
            near.append([op])
            families.append(near[-1])
        else:
            family.append(op)
    return [family for family in families if len(family) > 1]


def _may_join(op: MatmulOp) -> bool:
    """A product with one constant matrix for the whole batch, that only attention reads, and not as a mask."""
    uses = list(op.output.uses)
    readers = all(isinstance(use.operation, AttentionOp) and use.index < 3 for use in uses)
    columns = dims(op.output.type)[-1]
    shared = all(size == 1 for size in dims(op.rhs.type)[:-2])
    places = any(isinstance(inner, IndexOp) for inner in op.epilogue.block.ops)
    constant = isinstance(op.rhs.owner, ConstantOp)
    return bool(uses) and readers and shared and constant and isinstance(columns, int) and not places


def _fit(first: MatmulOp, other: MatmulOp) -> bool:
    """Whether two products differ in nothing but constants and the number of columns."""
    alike = (
        first.lhs is other.lhs
        and first.transpose_lhs == other.transpose_lhs
        and first.transpose_rhs == other.transpose_rhs
        and element_of(first.rhs.type) == element_of(other.rhs.type)
        and dims(first.output.type)[:-1] == dims(other.output.type)[:-1]
        and element_of(first.output.type) == element_of(other.output.type)
        and first.access == other.access
        and first.epilogue.is_structurally_equivalent(other.epilogue)
    )
    return alike and all(
        left is right if axis is None else _are_joined(left, right, axis)
        for left, right, axis in zip(first.extras, other.extras, _column_axes(first), strict=True)
    )


def _column_axes(op: MatmulOp) -> list[int | None]:
    """For each extra operand the axis along which it has one element per column; None: it is the same for all."""
    column = f"d{rank(op.output.type) - 1}"
    axes: list[int | None] = []
    for access in op.access:
        along = [axis for axis, index in enumerate(access.indices()) if column in symbols(index)]
        axes.append(along[0] if along else None)
    return axes


def _are_joined(left: SSAValue, right: SSAValue, axis: int) -> bool:
    """Whether both are constants that differ in length along an axis alone."""
    constants = isinstance(left.owner, ConstantOp) and isinstance(right.owner, ConstantOp)
    shapes = [(*dims(value.type)[:axis], *dims(value.type)[axis + 1 :]) for value in (left, right)]
    return constants and shapes[0] == shapes[1] and element_of(left.type) == element_of(right.type)


def _join(siblings: Sequence[MatmulOp], ctx: Context) -> None:
    first = siblings[0]
    block = first.parent
    assert block is not None
    name = " + ".join(name_of(op) for op in siblings)
    axis = rank(first.rhs.type) - (2 if first.transpose_rhs.value.data else 1)
    weights = _joined([op.rhs for op in siblings], axis, f"{name}.weights", ctx, first)
    extras = [
        value if along is None else _joined([op.extras[n] for op in siblings], along, f"{name}.{n}", ctx, first)
        for n, (value, along) in enumerate(zip(first.extras, _column_axes(first), strict=True))
    ]
    counts = [_columns(op) for op in siblings]
    result = with_dims(first.output.type, [*dims(first.output.type)[:-1], sum(counts)])
    made = MatmulOp(
        first.lhs,
        weights,
        result,
        first.epilogue.clone(),
        extras,
        list(first.access),
        bool(first.transpose_lhs.value.data),
        bool(first.transpose_rhs.value.data),
    )
    made.location = fuse(*siblings)
    applied(made)
    block.insert_op_before(made, first)
    start = 0
    for op, count in zip(siblings, counts, strict=True):
        _read_from(op.output, made.output, start)
        block.erase_op(op)
        start += count


def _columns(op: MatmulOp) -> int:
    count = dims(op.output.type)[-1]
    assert isinstance(count, int)
    return count


def _joined(values: Sequence[SSAValue], axis: int, hint: str, ctx: Context, before: Operation) -> SSAValue:
    """The constant that several constants make up along an axis."""
    import numpy as np

    arrays = [array for value in values if (array := array_of(value, ctx)) is not None]
    constant = ConstantOp.from_array(np.concatenate(arrays, axis), weights_of(ctx), hint)
    block = before.parent
    assert block is not None
    block.insert_op_before(constant, before)
    return constant.output


def _read_from(part: SSAValue, whole: SSAValue, start: int) -> None:
    """Let attention read columns from `start` on of a product in place of one that had these columns alone."""
    for use in list(part.uses):
        op = use.operation
        assert isinstance(op, AttentionOp)
        *outer, column = op.access.data[use.index].indices()
        accesses = list(op.access)
        accesses[use.index] = AccessAttr.of([*outer, column + start])
        op.properties["access"] = ArrayAttr(accesses)
        op.operands[use.index] = whole
