"""A 1x1 convolution is a product of its kernel with the pixels: what becomes of it when it is written as one?"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.rules import Match, Outcome, RulePass, constant, op, rule, value


def _is_pointwise(convolution: ConvolutionOp) -> bool:
    """Whether each pixel of the result follows from the same pixel of the input."""
    padding = [length for pads in convolution.padding() for length in pads]
    steps = (*convolution.strides(), *convolution.sizes())
    return not any(padding) and all(step == 1 for step in steps) and len(dims(convolution.input.type)) == 4


POINTWISE = op(ConvolutionOp, value("x"), constant("kernel"), bias=None).where(_is_pointwise, "it has windows")


@dataclass(frozen=True)
class WriteConvolutionAsProductPass(RulePass):
    """Write 1x1 convolutions without bias as products.

    Before:

        %y = trt.convolution %x, %w : (tensor<1x32x14x14xf32>, tensor<64x32x1x1xf32>) -> tensor<1x64x14x14xf32>

    After:

        %p = trt.shuffle %x {reshape_dims = #trt.dims<["1", "32", "196"]>} : .. -> tensor<1x32x196xf32>
        %q = trt.matrix_multiply %m, %p : (tensor<1x64x32xf32>, tensor<1x32x196xf32>) -> tensor<1x64x196xf32>
        %y = trt.shuffle %q {reshape_dims = #trt.dims<["1", "64", "14", "14"]>} : .. -> tensor<1x64x14x14xf32>
    """

    name = "write-convolution-as-product"

    @rule(POINTWISE.named("convolution"))
    def write(self, m: Match, convolution: ConvolutionOp, x: SSAValue, kernel: SSAValue) -> Outcome:
        batch, channels, height, width = dims(x.type)
        if convolution.num_groups.value.data != 1:
            return "it has groups"
        pixels = m.make(ShuffleOp, x, reshape_dims=[batch, channels, height * width])
        array = m.array(kernel)
        matrix = m.constant(array.reshape(1, *array.shape[:2]), "matrix", convolution)
        product = m.make(MatrixMultiplyOp, matrix, pixels.output)
        return m.make(ShuffleOp, product.output, reshape_dims=dims(convolution.output.type))
