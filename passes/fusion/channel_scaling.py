"""Scales and shifts per channel: recognised in layers, multiplied into kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.scale import ScaleMode, ScaleOp

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Weighted = ConvolutionOp | DeconvolutionOp | FullyConnectedOp | MatrixMultiplyOp


@dataclass(frozen=True)
class Affine:
    """y = x * scale + shift, in float64; each is one number or one per channel."""

    scale: Array
    shift: Array


def affine_of(op: ScaleOp | ElementwiseOp, value: SSAValue, channel_axis: int, ctx: Context) -> Affine | None:
    """What a layer does to its operand `value` per channel; None where it does something else.

    `channel_axis` is counted from the end of the operand's axes.
    """
    if isinstance(op, ScaleOp):
        return _affine_of_scale(op, rank(value.type) + channel_axis, ctx)
    return _affine_of_elementwise(op, value, rank(value.type) + channel_axis, ctx)


def _affine_of_scale(op: ScaleOp, axis: int, ctx: Context) -> Affine | None:
    import numpy as np

    fits = op.mode.data is ScaleMode.UNIFORM or (
        op.mode.data is ScaleMode.CHANNEL and op.channel_axis.value.data == axis
    )
    if op.power is not None or not fits:
        return None
    found: list[Array] = []
    for operand, neutral in ((op.scale, 1.0), (op.shift, 0.0)):
        array = np.array(neutral) if operand is None else array_of(operand, ctx)
        if array is None:
            return None
        found.append(array.astype(np.float64))
    return Affine(*found)


def _affine_of_elementwise(op: ElementwiseOp, value: SSAValue, axis: int, ctx: Context) -> Affine | None:
    import numpy as np

    value_first = op.lhs is value
    other = op.rhs if value_first else op.lhs
    array = array_of(other, ctx)
    if array is None or other is value or dims(op.output.type) != dims(value.type):
        return None
    if any(length != 1 for k, length in enumerate(array.shape) if k != axis):
        return None
    number = array.astype(np.float64).reshape(-1) if array.size > 1 else array.astype(np.float64).reshape(())
    zero, one = np.array(0.0), np.array(1.0)
    kind = ElementwiseKind
    table = {
        kind.SUM: Affine(one, number),
        kind.PROD: Affine(number, zero),
        kind.SUB: Affine(one, -number) if value_first else Affine(-one, number),
    }
    if op.kind.data is kind.DIV and value_first and np.all(number):
        return Affine(1 / number, zero)
    return table.get(op.kind.data)


def scaled_kernel(layer: Weighted, kernel: Array, scale: Array) -> Array | None:
    """The kernel whose results are `scale` times as large per channel; None where the layer's form has no channels."""
    import numpy as np

    if np.all(scale == 1):
        return kernel
    if isinstance(layer, MatrixMultiplyOp):
        if layer.rhs_op.data is MatrixOperation.VECTOR:
            return None
        axis = kernel.ndim - (2 if layer.rhs_op.data is MatrixOperation.TRANSPOSE else 1)
    else:
        axis = 0
    if isinstance(layer, DeconvolutionOp) and scale.ndim:
        return _scaled_deconvolution(layer, kernel, scale)
    shape = [-1 if k == axis else 1 for k in range(kernel.ndim)] if scale.ndim else [1] * kernel.ndim
    with np.errstate(over="ignore"):
        return (kernel.astype(np.float64) * scale.reshape(shape)).astype(kernel.dtype)


def _scaled_deconvolution(layer: DeconvolutionOp, kernel: Array, scale: Array) -> Array:
    """The kernel is C x M/groups x R..: channels of group g read only the g-th part of C."""
    import numpy as np

    groups = layer.groups
    parts = kernel.reshape(groups, kernel.shape[0] // groups, *kernel.shape[1:]).astype(np.float64)
    factors = scale.reshape(groups, 1, kernel.shape[1], *[1] * (kernel.ndim - 2))
    with np.errstate(over="ignore"):
        return (parts * factors).reshape(kernel.shape).astype(kernel.dtype)


def channel_count(layer: Weighted, kernel: Array) -> int:
    """How many channels the layer's result has."""
    return kernel.shape[1] * layer.groups if isinstance(layer, DeconvolutionOp) else kernel.shape[0]
