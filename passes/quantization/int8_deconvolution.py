"""Which deconvolutions of quantised tensors become convolutions of integers, and with what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context

from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.kernels.lib.deconvolution_phases import PhaseAxis
from mlirt.passes.quantization.integer_weights import IntegerWeights, integer_bias, integer_weights
from mlirt.passes.quantization.rescaling import Ending, ending_of
from mlirt.passes.quantization.scalings import Refusal, quantized_input

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True, eq=False)
class IntegerDeconvolution:
    """What the convolution of a quantised deconvolution is made of."""

    axes: Sequence[PhaseAxis]
    weights: IntegerWeights
    factor: Array
    bias: Array | None
    ending: Ending


def integer_deconvolution(op: DeconvolutionOp, ctx: Context) -> IntegerDeconvolution | Refusal:
    """How a deconvolution becomes a convolution of integers, or why it does not."""
    import numpy as np

    source = quantized_input(op.input, ctx)
    if isinstance(source, Refusal):
        return source
    weights = integer_weights(op.kernel, 1, ctx)
    if isinstance(weights, Refusal):
        return weights
    ending = ending_of(op.output, ctx)
    if ending is None or ending.scaling.axis is not None:
        return Refusal("no quantization with one scale reads its result alone")
    axes = _axes(op)
    if axes is None:
        return Refusal("its window or its places are none that convolutions compute")
    scale = np.tile(weights.scale, op.groups) if weights.scale.ndim else weights.scale
    factor = np.asarray(source[1].scale * scale)
    bias = None if op.bias is None else integer_bias(op.bias, factor, ctx)
    return bias if isinstance(bias, Refusal) else IntegerDeconvolution(axes, weights, factor, bias, ending)


def _axes(op: DeconvolutionOp) -> list[PhaseAxis] | None:
    """The axes of its windows; None where a run tells the padding of the convolution, or it would be negative."""
    if rank(op.input.type) != rank(op.kernel.type):
        return None
    lengths, outputs = dims(op.input.type)[2:], dims(op.output.type)[2:]
    columns = zip(lengths, outputs, op.strides(), op.dilations(), op.sizes(), op.padding(), strict=True)
    axes: list[PhaseAxis] = []
    for length, output, stride, dilation, size, (pre, _) in columns:
        if not isinstance(pre, int) or pre < 0:
            return None
        axes.append(PhaseAxis(length, output, stride, (size - 1) * dilation + 1, pre))
    fits = all(isinstance(axis.post_padding, int) and axis.post_padding >= 0 for axis in axes)
    return axes if fits else None
