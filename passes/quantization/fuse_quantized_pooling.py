"""Means of quantised tensors, in the arithmetic of the integer kernels that other programs have for them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, f32, i32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integers
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.pooling import PoolingOp
from mlirt.dialects.trt.reduce import ReduceKind, ReduceKindAttr, ReduceOp
from mlirt.dialects.trt.shape import ShapeOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.quantization.int8_layers import Int8Layers
from mlirt.passes.quantization.quantized_values import Bytes, dequantized_from
from mlirt.passes.quantization.rescaling import ending_of
from mlirt.passes.quantization.scalings import Scaling
from mlirt.passes.rules import Match, Outcome, RulePass, either, op, rule


@dataclass(frozen=True)
class FuseQuantizedPoolingPass(RulePass):
    """Compute dequantize > mean > quantize of bytes x with exact sums, or with the rounding of such kernels.

    With float32 constants, as onnxruntime's QLinearGlobalAveragePool and QLinearAveragePool have them:

    - the mean over axes of n elements: y = round(sum(x - z_x) * (s_x / (s_y n))) + z_y, the sum being one of integers;
    - the mean over a window that slides: y = round(mean((x - z_x) s_x) / s_y + z_y), where the zero point is added
      before the rounding.

    Nothing else reads the mean, and scales and zero points are constants, one for all elements.

    Before:

        %r = trt.dequantize %x, %s_x, %z_x : (tensor<1x4x2x2xui8>, tensor<f32>, tensor<ui8>) -> tensor<1x4x2x2xf32>
        %m = trt.reduce avg %r {axes = array<i64: 2, 3>} : (tensor<1x4x2x2xf32>) -> tensor<1x4x1x1xf32>
        %y = trt.quantize %m, %s_y, %z_y : (tensor<1x4x1x1xf32>, tensor<f32>, tensor<ui8>) -> tensor<1x4x1x1xui8>

    After:

        %r = trt.identity %x : (tensor<1x4x2x2xui8>) -> tensor<1x4x2x2xi32>
        %d = trt.elementwise sub %r, %z : ...
        %t = trt.reduce sum %d {axes = array<i64: 2, 3>} : (tensor<1x4x2x2xi32>) -> tensor<1x4x1x1xi32>
        %f = trt.identity %t : (tensor<1x4x1x1xi32>) -> tensor<1x4x1x1xf32>
        %m = trt.elementwise prod %f, %scale : ...
        %y = trt.quantize %m, %one, %z_y : ...
    """

    name = "fuse-quantized-pooling"

    @rule(op(ReduceOp | PoolingOp, kind=either("avg", "average")).named("layer"))
    def fuse(self, m: Match, ctx: Context, layer: ReduceOp | PoolingOp) -> Outcome:
        ending, operand = ending_of(layer.output, ctx), dequantized_from(layer.input, ctx)
        if ending is None or ending.between or operand is None:
            return None
        m.replaces(ending.quantize)
        result, write = ending.scaling, Int8Layers.in_front_of(ending.quantize, ctx, layer)
        if isinstance(layer, ReduceOp):
            return write.rounded(_mean(write, layer, operand, result), ending.quantize, with_zero=True)
        scale = write.number_like(float(result.scale), layer.output)
        ratio = write.binary(ElementwiseKind.DIV, layer.output, scale)
        zero = write.number_like(float(result.zero), ratio)
        return write.rounded(write.binary(ElementwiseKind.SUM, ratio, zero), ending.quantize)


def _mean(write: Int8Layers, layer: ReduceOp, operand: Bytes, result: Scaling) -> SSAValue:
    value, own = write.moved(operand), operand.scaling
    wide = write.cast(value, i32)
    if own.zero:
        wide = write.binary(ElementwiseKind.SUB, wide, write.number_like(float(own.zero), wide, i32))
    total = write.layer(ReduceOp, [wide], {**layer.properties, "kind": ReduceKindAttr(ReduceKind.SUM)})
    exact = write.cast(total, f32)
    count = _count(write, value, integers(layer.axes), exact)
    divisor = write.binary(ElementwiseKind.PROD, write.number_like(float(result.scale), exact), count)
    factor = write.binary(ElementwiseKind.DIV, write.number_like(float(own.scale), exact), divisor)
    return write.binary(ElementwiseKind.PROD, exact, factor)


def _count(write: Int8Layers, value: SSAValue, axes: tuple[int, ...], like: SSAValue) -> SSAValue:
    """How many elements lie along some axes, as a float32 number that broadcasts to `like`."""
    import numpy as np

    known, count = 1, None
    for axis in axes:
        size = dims(value.type)[axis]
        if isinstance(size, int):
            known *= size
            continue
        place = write.constant(np.array(axis, np.int64))
        length = write.layer(GatherOp, [write.layer(ShapeOp, [value]), place], {"axis": IntegerAttr(0, i64)})
        count = length if count is None else write.binary(ElementwiseKind.PROD, count, length)
    if count is None:
        return write.number_like(known, like)
    if known != 1:
        count = write.binary(ElementwiseKind.PROD, count, write.number_like(known, count, i64))
    single = write.layer(ShuffleOp, [count, None], {"reshape_dims": DimsAttr.of([1] * rank(like.type))})
    return write.cast(single, f32)
