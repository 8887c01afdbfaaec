"""The columns of a product: whether they can be computed apart from each other, and what its operands have for each."""

from __future__ import annotations

from collections.abc import Iterable

from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import IndexOp
from mlirt.dialects.symbolic import symbols
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.constant import ConstantOp


def has_one_matrix(op: MatmulOp) -> bool:
    """Whether the right matrix is a constant for the whole batch, and no epilogue asks for the column."""
    shared = all(size == 1 for size in dims(op.rhs.type)[:-2])
    places = any(isinstance(inner, IndexOp) for inner in op.epilogue.block.ops)
    return shared and isinstance(op.rhs.owner, ConstantOp) and isinstance(dims(op.output.type)[-1], int) and not places


def column_axes(accesses: Iterable[AccessAttr], axes: int) -> list[int | None]:
    """For each operand the axis along which it has one element per column, of `axes` dimensions; None: it has one."""
    column = f"d{axes - 1}"
    found: list[int | None] = []
    for access in accesses:
        along = [axis for axis, index in enumerate(access.indices()) if column in symbols(index)]
        found.append(along[0] if along else None)
    return found


__all__ = ["column_axes", "has_one_matrix"]
