"""Which convolutions of dequantised tensors can multiply the bytes themselves, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.ir import SSAValue

from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.passes.quantization.integer_weights import IntegerWeights, integer_bias, integer_weights
from mlirt.passes.quantization.scalings import Refusal, quantized_input

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True, eq=False)
class IntegerConvolution:
    """What an integer convolution needs: bytes, their zero point, weights, a bias and the scale of the sums."""

    input: SSAValue
    zero: int
    weights: IntegerWeights
    factor: Array
    bias: Array | None


def integer_convolution(op: ConvolutionOp, ctx: Context) -> IntegerConvolution | Refusal:
    """How a convolution becomes one of integers, or why it does not."""
    import numpy as np

    source = quantized_input(op.input, ctx)
    if isinstance(source, Refusal):
        return source
    weights = integer_weights(op.kernel, 0, ctx)
    if isinstance(weights, Refusal):
        return weights
    values, scaling = source
    factor = np.asarray(scaling.scale * weights.scale)
    bias = None if op.bias is None else integer_bias(op.bias, factor, ctx)
    if isinstance(bias, Refusal):
        return bias
    return IntegerConvolution(values, int(scaling.zero), weights, factor, bias)
