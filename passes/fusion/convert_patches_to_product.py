"""A convolution of windows that lie side by side becomes a product of matrices."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation, MatrixOperationAttr
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, constant, op, rule

_MAX_CHANNELS = 16


@dataclass(frozen=True)
class ConvertPatchesToProductPass(RulePass):
    """Bring each window of a convolution to a row, which is multiplied by the weights (space to depth).

    Only windows that lie side by side without padding, as in the first layer of vision transformers, of at most 16
    channels and at least `min-cells` cells with these: convolutions of more channels have fast kernels, and those of
    few cells gain nothing. The input is copied once, in the order in which matrix units read it. The input has numbers
    for lengths along the window, multiples of it; the batch may be dynamic.

    Before:

        %y = trt.convolution %x, %w {stride = array<i64: 16, 16>} :
             (tensor<?x3x224x224xf32>, tensor<768x3x16x16xf32>) -> tensor<?x768x14x14xf32>

    After:

        %a = trt.shuffle %x {reshape_dims = [n, 3, 14, 16, 14, 16], second_transpose = [0, 2, 4, 1, 3, 5]} : ...
        %b = trt.shuffle %a {reshape_dims = [n, 196, 768]} : ...
        %c = trt.matrix_multiply %b, %v : (tensor<?x196x768xf32>, tensor<1x768x768xf32>) -> tensor<?x196x768xf32>
        %y = trt.shuffle %c {first_transpose = [0, 2, 1], reshape_dims = [n, 768, 14, 14]} : ...
    """

    name = "convert-patches-to-product"

    min_cells: int = option(128, at_least=1)

    @rule(op(ConvolutionOp, kernel=constant("kernel")).named("convolution"))
    def convert(self, m: Match, ctx: Context, convolution: ConvolutionOp, kernel: SSAValue) -> Outcome:
        _, channels, *window = dims(kernel.type)
        is_patch = convolution.strides() == tuple(window) and set(convolution.dilations()) == {1}
        if (
            not is_patch
            or set(convolution.padding()) != {(0, 0)}
            or convolution.groups != 1
            or rank(convolution.input.type) != rank(kernel.type)
        ):
            return None
        sides = [size for size in window if isinstance(size, int)]
        if not isinstance(channels, int) or len(sides) < len(window) or prod(sides) == 1:
            return None
        cells = channels * prod(sides)
        if channels > _MAX_CHANNELS or cells < self.min_cells:
            return "its windows have few cells, or many channels"
        batch, _, *lengths = dims(convolution.input.type)
        counts: list[int] = []
        for length, size in zip(lengths, sides, strict=True):
            if not isinstance(length, int) or length % size:
                return "a length of its input is no number, or no multiple of its window"
            counts.append(length // size)
        build = LayerBuilder.in_front_of(convolution, ctx)
        split = [part for pair in zip(counts, sides, strict=True) for part in pair]
        apart = build.reshaped(convolution.input, [batch, channels, *split])
        places = range(2, 2 + len(split))
        moved = build.transposed(apart, [0, *places[::2], 1, *places[1::2]])
        rows = build.reshaped(moved, [batch, prod(counts), cells])
        array = m.array(kernel)
        weights = build.constant(array.reshape(1, len(array), cells).swapaxes(1, 2), "of rows")
        kinds = {
            "lhs_op": MatrixOperationAttr(MatrixOperation.NONE),
            "rhs_op": MatrixOperationAttr(MatrixOperation.NONE),
        }
        result = build.layer(MatrixMultiplyOp, [rows, weights], kinds)
        if convolution.bias is not None:
            bias = build.reshaped(convolution.bias, [1, 1, len(array)])
            result = build.binary(ElementwiseKind.SUM, result, bias)
        return build.reshaped(build.transposed(result, [0, 2, 1]), [batch, len(array), *counts])
