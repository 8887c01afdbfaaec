"""Matrix products of dequantised 8-bit floats compute with the 8-bit floats themselves."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context

from mlirt.dialects.tensor_types import rank
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.passes.quantization.scalings import Refusal, scaling_of
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

FACTOR = op(DequantizeOp).shared()


@dataclass(frozen=True)
class FuseFloat8ProductsPass(RulePass):
    """Multiply 8-bit floats before their scales: the sum of products, in float32, is multiplied by both.

    The scales must be known, one for all of a tensor or, on the right, one for each column. On a CPU nothing multiplies
    8-bit floats: there the dequantised numbers are multiplied.

    Before:

        %a = trt.dequantize %q, %sx : (tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf32>
        %w = trt.dequantize %k, %sw : (tensor<8x8xf8E4M3FN>, tensor<f32>) -> tensor<8x8xf32>
        %p = trt.matrix_multiply %a, %w : ..

    After:

        %s = trt.matrix_multiply %q, %k : (tensor<4x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>) -> tensor<4x8xf32>
        %p = trt.elementwise prod %s, %sx_sw : ..
    """

    name = "fuse-float8-products"

    @rule(op(MatrixMultiplyOp, FACTOR.named("left"), FACTOR.named("right")).named("product"))
    def fuse(
        self, m: Match, ctx: Context, product: MatrixMultiplyOp, left: DequantizeOp, right: DequantizeOp
    ) -> Outcome:
        first, second = scaling_of(left, ctx, float8=True), scaling_of(right, ctx, float8=True)
        if isinstance(first, Refusal) or isinstance(second, Refusal):
            return first.reason if isinstance(first, Refusal) else second.reason if isinstance(second, Refusal) else ""
        transposed = product.rhs_op.data is MatrixOperation.TRANSPOSE
        is_vector = product.rhs_op.data is MatrixOperation.VECTOR
        column = None if is_vector else rank(right.input.type) - (2 if transposed else 1)
        if first.axis is not None or second.axis not in (None, column):
            return "it has other scales than one for all of a tensor, or on the right one for each column"
        total = m.make(MatrixMultiplyOp, left.input, right.input, **product.properties)
        axes, multiplier = rank(total.output.type), first.scale * second.scale
        shape = [-1 if axis == axes - 1 and multiplier.ndim else 1 for axis in range(axes)]
        return m.make(ElementwiseOp, total.output, m.constant(multiplier.reshape(shape)), kind="prod")
