"""Weights that stayed float32 between quantised tensors become bytes too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.layer_precisions import LayerPrecisions, Precision
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.passes.quantization.int8_layers import Int8Layers
from mlirt.passes.quantization.rescaling import ending_of
from mlirt.passes.quantization.scalings import Refusal, quantized_input

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class QuantizeLoneWeightsPass(ModulePass):
    """Round constant float32 weights of convolutions, deconvolutions and biased products between int8 tensors.

    A network that has been quantised around such a layer means it to be one of int8, and onnxruntime takes it so. With
    a number on one side alone it stays float, and so does a layer that is asked to compute in another format. The
    weights get 256 steps from their least to their greatest number, zero included: step s = (high - low) / 255, zero
    point round(-128 - low / s). A constant bias is rounded to multiples of the input's scale times s.

    Before:

        %x = trt.dequantize %q, %sx, %zx : ...
        %c = trt.deconvolution %x, %w, %b : ...
        %y = trt.quantize %c, %sy, %zy : ...

    After:

        %x = trt.dequantize %q, %sx, %zx : ...
        %k = trt.dequantize %bytes, %sw, %zw : (tensor<4x2x2x2xi8>, tensor<f32>, tensor<i8>) -> tensor<4x2x2x2xf32>
        %d = trt.dequantize %integers, %sx_sw : (tensor<2xi32>, tensor<f32>) -> tensor<2xf32>
        %c = trt.deconvolution %x, %k, %d : ...
        %y = trt.quantize %c, %sy, %zy : ...
    """

    name = "quantize-lone-weights"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        asked = LayerPrecisions(op)
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if asked.of(inner) not in (None, Precision.INT8):
                    continue
                if isinstance(inner, ConvolutionOp | DeconvolutionOp) and ending_of(inner.output, ctx) is not None:
                    _quantize(inner, inner.input, inner.kernel, inner, inner.bias, ctx)
                elif isinstance(inner, MatrixMultiplyOp) and (total := _sum_with_bias(inner, ctx)) is not None:
                    _quantize(inner, inner.lhs, inner.rhs, *total, ctx)


def _sum_with_bias(product: MatrixMultiplyOp, ctx: Context) -> tuple[ElementwiseOp, SSAValue] | None:
    """The sum of a product of matrices with a row of constants, if it is quantised, and that row."""
    reader = product.output.get_user_of_unique_use()
    if not isinstance(reader, ElementwiseOp) or reader.kind.data is not ElementwiseKind.SUM:
        return None
    bias = reader.rhs if reader.lhs is product.output else reader.lhs
    shapes = [dims(value.type) for value in (product.lhs, product.rhs, bias)]
    is_row = [len(shape) for shape in shapes] == [2, 2, 2] and shapes[2] == (1, dims(product.output.type)[1])
    return (reader, bias) if is_row and ending_of(reader.output, ctx) is not None else None


def _quantize(
    layer: Operation, source: SSAValue, kernel: SSAValue, biased: Operation, bias: SSAValue | None, ctx: Context
) -> None:
    """Round the kernel of a layer with a quantised input, and the bias that `biased` adds."""
    import numpy as np

    weights = array_of(kernel, ctx) if element_of(kernel.type) == f32 else None
    added = None if bias is None else array_of(bias, ctx)
    found = quantized_input(source, ctx)
    if weights is None or not weights.size or isinstance(found, Refusal) or (bias is not None and added is None):
        return
    write = Int8Layers.in_front_of(layer, ctx)
    scale, zero = _steps(weights)
    stored = np.clip(np.rint(weights / scale) + zero, -128, 127).astype(np.int8)
    if bias is not None and added is not None:
        unit = found[1].scale * scale
        integers = np.rint(added / unit).astype(np.int64).clip(-(2**31), 2**31 - 1).astype(np.int32)
        _exchange(biased, bias, _dequantized(write, integers, unit, None))
    _exchange(layer, kernel, _dequantized(write, stored, scale, zero.astype(np.int8)))


def _exchange(reader: Operation, old: SSAValue, new: SSAValue) -> None:
    """Let an op read one value where it read another."""
    for position, operand in enumerate(reader.operands):
        if operand is old:
            reader.operands[position] = new


def _steps(kernel: Array) -> tuple[Array, Array]:
    """The size of a step in single precision, and which step is zero."""
    import numpy as np

    low, high = min(kernel.min(), np.float32(0)), max(kernel.max(), np.float32(0))
    scale = np.float32(1) if low == high else (high - low) / np.float32(255)
    return np.asarray(scale), np.asarray(np.rint(np.clip(np.float32(-128) - low / scale, -128, 127)))


def _dequantized(write: Int8Layers, integers: Array, scale: Array, zero: Array | None) -> SSAValue:
    import numpy as np

    operands = [write.constant(integers), write.constant(np.asarray(scale, np.float32))]
    return write.layer(DequantizeOp, [*operands, None if zero is None else write.constant(zero)])
