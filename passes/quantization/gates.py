"""Convolutions of a single pixel that compute what all pixels of a channel are multiplied with."""

from __future__ import annotations

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.tensor_types import dims, is_tensor
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp


def computes_a_gate(op: Operation) -> bool:
    """Whether an op is a convolution of one pixel whose result becomes factors of larger images.

    Squeeze and excitation is made of two such: the means of the channels go through both and a sigmoid.
    """
    return isinstance(op, ConvolutionOp) and _is_one_pixel(op.output) and _becomes_factors(op.output)


def _is_one_pixel(value: SSAValue) -> bool:
    return is_tensor(value.type) and len(dims(value.type)) > 2 and set(dims(value.type)[2:]) == {1}


def _becomes_factors(value: SSAValue) -> bool:
    """Whether a pixel, through layers that give one pixel again, multiplies more of them."""
    for reader in {use.operation for use in value.uses}:
        for result in reader.results:
            if _is_one_pixel(result):
                if _becomes_factors(result):
                    return True
            elif isinstance(reader, ElementwiseOp) and reader.kind.data is ElementwiseKind.PROD:
                return True
    return False
