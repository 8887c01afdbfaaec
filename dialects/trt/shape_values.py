"""Shape tensors: what small integer tensors are known to hold when the engine is built (tensorrt-features.md#6.1, 6.7).
"""

from __future__ import annotations

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim, sym
from mlirt.dialects.tensor_op import TensorOp, require
from mlirt.dialects.tensor_types import UNKNOWN_PREFIX, dims, element_of, is_bool, is_float, rank


def shape_value(value: SSAValue) -> tuple[Dim, ...] | None:
    """The elements of a 0-D or 1-D integer tensor, row by row; `None` where only the run knows them."""
    from mlirt.dialects.trt.constant import ConstantOp
    from mlirt.dialects.weights import WeightStore

    op = value.owner
    if (
        isinstance(op, ConstantOp)
        and isinstance(op.value, DenseIntOrFPElementsAttr)
        and not is_float(element_of(value.type))
    ):
        return tuple(int(element) for element in op.array(WeightStore()).ravel())
    return None


def shape_operand(op: TensorOp, constraint: str, value: SSAValue, label: str) -> tuple[Dim, ...]:
    """The lengths in a shape operand, `?` where only the run knows them; raises unless it is 1-D and integer."""
    element, shape = element_of(value.type), dims(value.type)
    require(
        rank(value.type) == 1 and not is_float(element) and not is_bool(element),
        f"{constraint}: the {label} operand of {op.name} must be a 1-D tensor of integers, but it is {value.type}",
    )
    require(
        isinstance(shape[0], int),
        f"{constraint}: the {label} operand of {op.name} needs a constant length, not {shape[0]}",
    )
    assert isinstance(shape[0], int)
    known = shape_value(value)
    return tuple(unknown(axis) for axis in range(shape[0])) if known is None else known


def unknown(axis: int) -> Dim:
    """The dimension `?` of an axis: equal to nothing that is known."""
    return sym(f"{UNKNOWN_PREFIX}{axis}")
