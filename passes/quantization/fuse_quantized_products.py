"""Matrix products and fully connected layers of quantised tensors compute with the integers themselves."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context

from mlirt.dialects.tensor_types import rank
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.quantization.int8_product import Product, integer_product
from mlirt.passes.quantization.rescaling import rescale
from mlirt.passes.quantization.scalings import Refusal, reads_integers
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FuseQuantizedProductsPass(RulePass):
    """Make a product of dequantised bytes with dequantised constant weights an exact one of int8.

    The zero point of the left operand becomes a constant that is added to the sums: itself times the sum of each column
    of the weights. A dequantised bias that alone is added to a matrix product joins it. The sum is multiplied once: by
    the product of the scales, or where only a quantisation reads the result, by that divided by its scale.

    Before:

        %a = trt.dequantize %q, %sx, %zx : ...
        %w = trt.dequantize %k, %sw : ...
        %p = trt.matrix_multiply %a, %w : ...
        %y = trt.quantize %p, %sy, %zy : ...

    After:

        %p = trt.matrix_multiply %q, %k : (ui8, i8) -> i32
        %c = trt.elementwise sum %p, %correction : i32
        %f = trt.identity %c : i32 to f32
        %m = trt.elementwise prod %f, %sx_sw_over_sy : ...
        %y = trt.quantize %m, %one, %zy : ...
    """

    name = "fuse-quantized-products"

    @rule(op(Product).named("product"))
    def fuse(self, m: Match, ctx: Context, product: Product) -> Outcome:
        import numpy as np

        found = integer_product(product, ctx)
        if isinstance(found, Refusal):
            return found.reason if reads_integers(product) else None
        layers = LayerBuilder.in_front_of(product, ctx)
        factors = [found.input, layers.constant(found.weights.array, "weights")]
        addition = found.addition.astype(np.int32)
        if isinstance(product, FullyConnectedOp):
            bias = layers.constant(addition, "bias") if addition.any() else None
            total = layers.layer(FullyConnectedOp, [*factors, bias])
            return rescale(m, product, total, found.factor, -3)
        total = layers.layer(MatrixMultiplyOp, factors, product.properties)
        if addition.any():
            shape = [1] * (rank(total.type) - addition.ndim) + list(addition.shape)
            total = layers.binary(ElementwiseKind.SUM, total, layers.constant(addition.reshape(shape), "addition"))
        return rescale(m, found.last, total, found.factor, -1)
