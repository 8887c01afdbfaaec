"""Quantised weights as int8 without a zero point, and biases as the integers that are added to their sums."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.int8_products import BYTES
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.passes.quantization.scalings import Refusal, scaling_of

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# Scales that frameworks compute in other precisions differ by a few units of float32's last place.
_SAME_SCALE = 1e-5


@dataclass(frozen=True, eq=False)
class IntegerWeights:
    """weights = array * scale: int8, and float32 that is 0-D or has one number per slice of the result's channels."""

    array: Array
    scale: Array


def integer_weights(value: SSAValue, channel_axis: int, ctx: Context) -> IntegerWeights | Refusal:
    """The int8 numbers behind dequantised constant weights; `channel_axis` is the one that a scale may vary along."""
    import numpy as np

    op = value.owner
    if not isinstance(op, DequantizeOp):
        return Refusal("its weights are not dequantised from integers")
    stored, scaling = array_of(op.input, ctx), scaling_of(op, ctx)
    if stored is None:
        return Refusal("its weights are computed at run time")
    if isinstance(scaling, Refusal):
        return scaling
    if scaling.element not in BYTES:
        return Refusal(f"its weights are quantised to {scaling.element}, which is not an 8-bit type")
    if scaling.axis not in (None, channel_axis):
        return Refusal(f"its weights have scales along axis {scaling.axis}, not along that of their results")
    along = [-1 if axis == scaling.axis else 1 for axis in range(stored.ndim)]
    centered = stored.astype(np.int64) - (scaling.zero.reshape(along) if scaling.zero.ndim else scaling.zero)
    low, high = int(centered.min(initial=0)), int(centered.max(initial=0))
    if low < -128 or high > 127:
        return Refusal(f"its weights without their zero point range from {low} to {high}, beyond int8")
    return IntegerWeights(centered.astype(np.int8), scaling.scale)


def integer_bias(value: SSAValue, factor: Array, ctx: Context, channel_axis: int = 0) -> Array | Refusal:
    """A constant bias in units of `factor`, the scale of the sums; integers with that scale are taken as they are.

    The result is int64 and 1-D along the channels, or as `value` is where that has other dimensions of length 1.
    """
    import numpy as np

    op = value.owner
    if isinstance(op, DequantizeOp) and element_of(op.input.type) == i32:
        stored, scaling = array_of(op.input, ctx), scaling_of(op, ctx)
        if stored is None or isinstance(scaling, Refusal):
            return Refusal("its bias is computed at run time")
        if scaling.axis in (None, channel_axis) and np.allclose(scaling.scale, factor, rtol=_SAME_SCALE, atol=0):
            return stored.astype(np.int64) - scaling.zero
    array = _real_bias(value, ctx)
    if array is None:
        return Refusal("its bias is computed at run time")
    shape = [-1 if axis == channel_axis else 1 for axis in range(array.ndim)]
    units = np.rint(array.astype(np.float64) / (factor.astype(np.float64).reshape(shape) if factor.ndim else factor))
    if not np.isfinite(units).all() or np.abs(units).max(initial=0) >= 2**31:
        return Refusal("its bias in units of the sums' scale does not fit in int32")
    return units.astype(np.int64)


def _real_bias(value: SSAValue, ctx: Context) -> Array | None:
    """A constant, or what the integers behind a dequantised constant stand for."""
    op = value.owner
    if not isinstance(op, DequantizeOp):
        return array_of(value, ctx)
    arrays = [array_of(operand, ctx) for operand in op.operands]
    known = [array for array in arrays if array is not None]
    return op.reference(*known)[0] if len(known) == len(arrays) else None
