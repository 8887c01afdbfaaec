"""Scales and zero points of quantisation layers, as far as they are known when the engine is built."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.tensor_types import element_of, is_float8
from mlirt.dialects.trt.int8_products import BYTES
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class Refusal:
    """Why a layer stays as it is, as the end of a sentence that begins with the layer's name."""

    reason: str


@dataclass(frozen=True, eq=False)
class Scaling:
    """real = (integer - zero) * scale, with one scale for all or one per slice of `axis`.

    `scale` is float32, `zero` int64 and of the same shape: 0-D, or 1-D where there is an axis. `element` is the type of
    the integers.
    """

    scale: Array
    zero: Array
    axis: int | None
    element: Attribute

    def equals(self, other: Scaling) -> bool:
        """Whether integers of one mean the same as those of the other."""
        import numpy as np

        same_place = self.axis == other.axis and self.element == other.element
        return same_place and np.array_equal(self.scale, other.scale) and np.array_equal(self.zero, other.zero)


def scaling_of(op: QuantizeOp | DequantizeOp, ctx: Context, *, float8: bool = False) -> Scaling | Refusal:
    """The numbers of a layer in float32; a scale per slice of an axis of length 1 is one for all.

    Only those of integers, or with `float8` only those of 8-bit floats: these neither move nor compare as integers do.
    """
    import numpy as np

    integers = op.input if isinstance(op, DequantizeOp) else op.output
    if is_float8(element_of(integers.type)) != float8:
        return Refusal(f"its input is quantised to {element_of(integers.type)}")
    scale = array_of(op.scale, ctx)
    zero = None if op.zero_point is None else array_of(op.zero_point, ctx)
    if scale is None or (op.zero_point is not None and zero is None):
        return Refusal("a scale or zero point is computed at run time")
    if element_of(op.scale.type) != f32:
        return Refusal(f"a scale has type {element_of(op.scale.type)}, which is not float32")
    if not (np.isfinite(scale).all() and (scale > 0).all()):
        return Refusal("a scale is not a positive number")
    offset = np.zeros(scale.shape, np.int64) if zero is None else zero.astype(np.int64)
    if scale.size == 1:
        return Scaling(scale.reshape(()), offset.reshape(()), None, element_of(integers.type))
    axis = None if op.axis is None else op.axis.value.data
    return Scaling(scale, offset, axis, element_of(integers.type))


def reads_integers(layer: Operation) -> bool:
    """Whether the first operand of a layer is dequantised; of others nobody asks why they are no integer layers."""
    return isinstance(layer.operands[0].owner, DequantizeOp)


def quantized_input(value: SSAValue, ctx: Context) -> tuple[SSAValue, Scaling] | Refusal:
    """The bytes behind a layer's input, which one scale turns into the input."""
    op = value.owner
    if not isinstance(op, DequantizeOp):
        return Refusal("its input is not dequantised from integers")
    scaling = scaling_of(op, ctx)
    if isinstance(scaling, Refusal):
        return scaling
    if scaling.element not in BYTES:
        return Refusal(f"its input is quantised to {scaling.element}, which is not an 8-bit type")
    if scaling.axis is not None:
        return Refusal(f"its input has one scale per slice of axis {scaling.axis}; products need one for all")
    return op.input, scaling
