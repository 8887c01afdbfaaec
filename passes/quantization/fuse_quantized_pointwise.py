"""Sums and products of quantised tensors, in the arithmetic that other programs' integer kernels have for them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import f32, i32
from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.passes.quantization.int8_layers import Int8Layers
from mlirt.passes.quantization.quantized_values import Bytes, dequantized_from
from mlirt.passes.quantization.rescaling import ending_of
from mlirt.passes.quantization.scalings import Scaling
from mlirt.passes.rules import Match, Outcome, RulePass, either, op, rule


@dataclass(frozen=True)
class FuseQuantizedPointwisePass(RulePass):
    """Compute dequantize > sum or product > quantize in int8 a and b, with few roundings and without a division.

    With float32 constants, in the order and with the roundings of onnxruntime's QLinearAdd and QLinearMul:

    - sum: A = s_a / s_y, B = s_b / s_y, c = z_y - fma(A, z_a, B z_b); y = round(fma(a, A, fma(b, B, c)));
    - product: M = (s_a s_b) / s_y; y = round(((a - z_a) (b - z_b)) M + z_y).

    The zero point of the result is added before the rounding, which therefore goes to the even byte, while
    `trt.quantize` rounds to the even multiple of its scale. An operand that is repeated along the last axis comes first
    in the sum. All bytes have one type, one scale and one zero point, and nothing else reads the sum or product; a
    rectifier or clip that the range of the result implies may lie between.

    Before:

        %x = trt.dequantize %a, %s_a, %z_a : ...
        %v = trt.dequantize %b, %s_b, %z_b : ...
        %r = trt.elementwise sum %x, %v : ...
        %y = trt.quantize %r, %s_y, %z_y : ...

    After:

        %x = trt.identity %a : (tensor<4xui8>) -> tensor<4xf32>
        %v = trt.identity %b : (tensor<4xui8>) -> tensor<4xf32>
        %p = trt.multiply_add %v, %B, %c : ...
        %r = trt.multiply_add %x, %A, %p : ...
        %y = trt.quantize %r, %one : ...
    """

    name = "fuse-quantized-pointwise"

    @rule(op(ElementwiseOp, kind=either("sum", "prod")).named("layer"))
    def fuse(self, m: Match, ctx: Context, layer: ElementwiseOp) -> Outcome:
        ending = ending_of(layer.output, ctx)
        lhs, rhs = dequantized_from(layer.lhs, ctx), dequantized_from(layer.rhs, ctx)
        if ending is None or lhs is None or rhs is None:
            return None
        if ending.kept or {lhs.scaling.element, rhs.scaling.element} != {ending.scaling.element}:
            return "its bytes have several types, or an activation behind it changes the result"
        m.replaces(ending.quantize, *reversed(ending.between))
        write = Int8Layers.in_front_of(ending.quantize, ctx, layer)
        compute = _sum if layer.kind.data is ElementwiseKind.SUM else _product
        return write.rounded(compute(write, lhs, rhs, ending.scaling), ending.quantize)


def _sum(write: Int8Layers, lhs: Bytes, rhs: Bytes, result: Scaling) -> SSAValue:
    import numpy as np

    a, b, own, other = write.moved(lhs), write.moved(rhs), lhs.scaling, rhs.scaling
    if _is_repeated(a, b):
        a, b, own, other = b, a, other, own
    first, second = own.scale / result.scale, other.scale / result.scale
    # What double precision makes of one product and the rounded other one is exact, but for the last rounding.
    shift = np.float32(np.float64(first) * own.zero + np.float64(second * np.float32(other.zero)))
    start = np.float32(result.zero) - shift
    partial = write.multiply_add(
        write.cast(b, f32), write.number_like(float(second), b), write.number_like(float(start), b)
    )
    return write.multiply_add(write.cast(a, f32), write.number_like(float(first), a), partial)


def _is_repeated(value: SSAValue, other: SSAValue) -> bool:
    """Whether one element of a value meets many of the other along the last axis."""
    last, others = (dims(one.type)[-1:] for one in (value, other))
    return last == (1,) and others != (1,)


def _product(write: Int8Layers, lhs: Bytes, rhs: Bytes, result: Scaling) -> SSAValue:
    exact = write.cast(write.binary(ElementwiseKind.PROD, _centred(write, lhs), _centred(write, rhs)), f32)
    scale = (lhs.scaling.scale * rhs.scaling.scale) / result.scale
    scaled = write.binary(ElementwiseKind.PROD, exact, write.number_like(float(scale), exact))
    return write.binary(ElementwiseKind.SUM, scaled, write.number_like(float(result.zero), exact))


def _centred(write: Int8Layers, operand: Bytes) -> SSAValue:
    """Bytes minus their zero point, as int32."""
    wide, zero = write.cast(write.moved(operand), i32), float(operand.scaling.zero)
    return write.binary(ElementwiseKind.SUB, wide, write.number_like(zero, wide, i32)) if zero else wide
