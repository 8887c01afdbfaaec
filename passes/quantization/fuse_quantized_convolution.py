"""Convolutions of quantised tensors compute with the integers themselves."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, i64

from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.quantization.int8_convolution import integer_convolution
from mlirt.passes.quantization.rescaling import rescale
from mlirt.passes.quantization.scalings import Refusal, reads_integers
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FuseQuantizedConvolutionPass(RulePass):
    """Make a convolution of dequantised bytes with dequantised constant weights an exact one of int8.

    Padding holds the input's zero point z, so that z times the sum of each kernel's weights is all that it adds; this
    and the bias, rounded to units of the product of both scales, are one integer bias. The sum is multiplied once: by
    the product of the scales, or where only a quantisation reads the result, by that divided by its scale. Rectifiers
    and clips that the range of the quantised numbers implies are erased.

    Before:

        %a = trt.dequantize %q, %sx, %zx : ...
        %w = trt.dequantize %k, %sw : ...
        %c = trt.convolution %a, %w, %b : ...
        %r = trt.activation relu %c : ...
        %y = trt.quantize %r, %sy, %zy : ...

    After:

        %c = trt.convolution %q, %k, %bias {padding_value = ..} : (ui8, i8, i32) -> i32
        %f = trt.identity %c : i32 to f32
        %m = trt.elementwise prod %f, %sx_sw_over_sy : ...
        %y = trt.quantize %m, %one, %zy : ...
    """

    name = "fuse-quantized-convolution"

    @rule(op(ConvolutionOp).named("convolution"))
    def fuse(self, m: Match, ctx: Context, convolution: ConvolutionOp) -> Outcome:
        import numpy as np

        found = integer_convolution(convolution, ctx)
        if isinstance(found, Refusal):
            return found.reason if reads_integers(convolution) else None
        layers, kernel = LayerBuilder.in_front_of(convolution, ctx), found.weights.array
        offset = -found.zero * kernel.astype(np.int64).reshape(len(kernel), -1).sum(1)
        bias = (offset if found.bias is None else offset + found.bias).astype(np.int32)
        operands = [
            found.input,
            layers.constant(kernel, "kernel"),
            layers.constant(bias, "bias") if bias.any() else None,
        ]
        properties = {**convolution.properties, "padding_value": IntegerAttr(found.zero, i64)}
        total = layers.layer(ConvolutionOp, operands, properties)
        return rescale(m, convolution, total, found.factor, -1 - len(convolution.sizes()))
