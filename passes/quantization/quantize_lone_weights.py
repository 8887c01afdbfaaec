"""Weights that stayed float32 between quantised tensors become bytes too."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.passes.quantization.layer_writer import LayerWriter
from mlirt.passes.quantization.rescaling import ending_of
from mlirt.passes.quantization.scalings import Refusal, quantized_input

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class QuantizeLoneWeightsPass(ModulePass):
    """Round constant float32 weights of convolutions and deconvolutions whose input and result are bytes.

    A network that has been quantised around such a layer means it to be one of bytes, and onnxruntime takes it so. The
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
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ConvolutionOp | DeconvolutionOp):
                    _quantize(inner, ctx)


def _quantize(layer: ConvolutionOp | DeconvolutionOp, ctx: Context) -> None:
    import numpy as np

    kernel = array_of(layer.kernel, ctx) if element_of(layer.kernel.type) == f32 else None
    bias = None if layer.bias is None else array_of(layer.bias, ctx)
    source = quantized_input(layer.input, ctx)
    if kernel is None or not kernel.size or isinstance(source, Refusal) or ending_of(layer.output, ctx) is None:
        return
    if layer.bias is not None and bias is None:
        return
    write = LayerWriter(ctx, layer, layer)
    scale, zero = _steps(kernel)
    stored = np.clip(np.rint(kernel / scale) + zero, -128, 127).astype(np.int8)
    operands = [layer.input, _dequantized(write, stored, scale, zero.astype(np.int8)), None]
    if bias is not None:
        unit = source[1].scale * scale
        integers = np.rint(bias / unit).astype(np.int64).clip(-(2**31), 2**31 - 1).astype(np.int32)
        operands[2] = _dequantized(write, integers, unit, None)
    new = type(layer).build_inferred(operands, layer.properties, layer.location)
    write.insert(new)
    new.output.name_hint = layer.output.name_hint
    layer.output.replace_all_uses_with(new.output)
    layer.detach()
    layer.erase()


def _steps(kernel: Array) -> tuple[Array, Array]:
    """The size of a step in single precision, and which step is zero."""
    import numpy as np

    low, high = min(kernel.min(), np.float32(0)), max(kernel.max(), np.float32(0))
    scale = np.float32(1) if low == high else (high - low) / np.float32(255)
    return np.asarray(scale), np.asarray(np.rint(np.clip(np.float32(-128) - low / scale, -128, 127)))


def _dequantized(write: LayerWriter, integers: Array, scale: Array, zero: Array | None) -> SSAValue:
    import numpy as np

    operands = [write.constant(integers), write.constant(np.asarray(scale, np.float32))]
    return write.layer(DequantizeOp, [*operands, None if zero is None else write.constant(zero)])
