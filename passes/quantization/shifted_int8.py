"""int8 as unsigned ones that are 128 more: constants, conversions, and scales in front and behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import i8, i32
from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.tensor_types import dims, with_element
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.dialects.trt.int8_products import ui8
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.quantization.int8_layers import Int8Layers

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

HALF = 128


def raised_array(array: Array) -> Array:
    """int8 numbers as uint8, 128 more."""
    import numpy as np

    return (array.astype(np.int64) + HALF).astype(np.uint8)


def raised_bytes(value: SSAValue, write: Int8Layers) -> SSAValue:
    """The unsigned version of int8 that something else computes."""
    wide = write.cast(value, i32)
    return write.cast(write.binary(ElementwiseKind.SUM, wide, write.number_like(HALF, wide, i32)), ui8)


def lowered_bytes(value: SSAValue, write: Int8Layers) -> SSAValue:
    """The int8 again."""
    wide = write.cast(value, i32)
    return write.cast(write.binary(ElementwiseKind.SUB, wide, write.number_like(HALF, wide, i32)), i8)


def has_known_zero(op: QuantizeOp | DequantizeOp, ctx: Context) -> bool:
    """Whether the zero point can be another one."""
    return op.zero_point is None or array_of(op.zero_point, ctx) is not None


def _raised_zero(op: QuantizeOp | DequantizeOp, write: Int8Layers) -> SSAValue:
    import numpy as np

    shape = [size for size in dims(op.scale.type) if isinstance(size, int)]
    zero = None if op.zero_point is None else array_of(op.zero_point, write.ctx)
    return write.constant(raised_array(np.zeros(shape, np.int8) if zero is None else zero))


def raised_quantization(op: QuantizeOp, write: Int8Layers) -> SSAValue:
    """The unsigned version of a quantisation's result."""
    made = QuantizeOp.build(
        operands=[op.input, op.scale, _raised_zero(op, write)],
        properties=dict(op.properties),
        result_types=[with_element(op.output.type, ui8)],
    )
    return write.value(made)


def replace_dequantization(op: DequantizeOp, value: SSAValue, write: Int8Layers) -> None:
    """Let a dequantisation read the unsigned version of its bytes."""
    made = DequantizeOp.build(
        operands=[value, op.scale, _raised_zero(op, write)],
        properties=dict(op.properties),
        result_types=[op.output.type],
    )
    result = write.value(made)
    result.name_hint = op.output.name_hint
    op.output.replace_all_uses_with(result)
    op.detach()
    op.erase()
