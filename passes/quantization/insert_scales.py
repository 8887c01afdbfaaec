"""Gives a network that was trained in float32 the scales with which its products are computed in int8."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.context import weights_of
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.calibration_cache import Cache, read_cache
from mlirt.passes.quantization.explicit_networks import is_explicit, warn_of_ranges
from mlirt.passes.quantization.integer_choice import IntegerChoice
from mlirt.passes.quantization.integer_operands import weight_axis
from mlirt.passes.quantization.operand_steps import OperandSteps
from mlirt.passes.quantization.scale_insertion import quantized_and_back, round_weights
from mlirt.passes.quantization.tensor_ranges import MAX_INT8, TensorRanges, ranges_in, set_ranges, take_ranges


@dataclass(frozen=True)
class InsertScalesPass(ModulePass):
    """Round the operands of layers that have integer kernels to 8 bits, with scales from the tensors' ranges.

    The ranges are the module's `trt.ranges`, or those of a calibration cache, `cache=FILE`. Quantised are: the
    input of convolutions, fully connected layers and products whose weights are constant, and the weights, with one
    scale for each output channel; residual additions, as far as no product of the addition computes the operand in
    its own epilogue and no other layer reads its numbers; average poolings between quantised layers, of bytes that
    a product reads too. Everything else follows from these pairs. Deconvolutions, depthwise convolutions,
    convolutions of a single pixel whose result multiplies images, and small products (sums of fewer than 32, less
    than a 32nd of the network's work) would not be faster, and stay float.

    Where `trt.channels` tells how the channels of a tensor differ, and only products read it, each channel has a scale
    of its own: the quantisation divides by it, and the weights that the channel meets are multiplied with it before
    they are rounded. The dequantisation behind has the tensor's own scale. What the rounding of weights changes in the
    mean of a result is added to the bias. Where none of these products pads, the bytes have the zero point with which
    their steps are smallest. Tensors that are joined or moved have one scale, so that their bytes are; but not where
    one that is joined would need less than a quarter of it.

    A layer stays float where the range of a tensor that it reads or makes is missing (with a warning), where
    `trt.precision` of the layer or `trt.layer_precisions` of the module say so, and where it is no product and lies
    behind the last product before a float32 output. A network that quantises already is left alone, with a warning. The
    module does not carry the ranges any further.

    Before:

        %y = trt.convolution %x, %w : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>

    After:

        %q = trt.quantize %x, %s : (tensor<1x3x8x8xf32>, tensor<f32>) -> tensor<1x3x8x8xi8>
        %d = trt.dequantize %q, %s : (tensor<1x3x8x8xi8>, tensor<f32>) -> tensor<1x3x8x8xf32>
        %v = trt.dequantize %i, %t {axis = 0 : i64} : (tensor<4x3x3x3xi8>, tensor<4xf32>) -> tensor<4x3x3x3xf32>
        %y = trt.convolution %d, %v : (tensor<1x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<1x4x6x6xf32>
    """

    name = "insert-scales"

    cache: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.cache:
            cache = _read(self.cache)
            set_ranges(op, {name: scale * MAX_INT8 for name, scale in cache.scales.items()}, cache.channels)
        ranges = ranges_in(op)
        if not ranges:
            return
        known = TensorRanges(op, ranges)
        take_ranges(op)
        if is_explicit(op):
            warn_of_ranges()
            return
        _insert(op, known, ctx)


def _read(path: str) -> Cache:
    try:
        return read_cache(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInputError(f"calibration cache {path}: {error.strerror}") from error


def _insert(module: ModuleOp, ranges: TensorRanges, ctx: Context) -> None:
    layers = IntegerChoice(module, ranges).operands()
    steps = OperandSteps(ranges, layers)
    of_layers = {layer: [steps.of(layer.operands[position]) for position in layers[layer]] for layer in layers}
    rounded: dict[SSAValue, SSAValue] = {}
    for layer, positions in layers.items():
        for position, found in zip(positions, of_layers[layer], strict=True):
            value = layer.operands[position]
            if value not in rounded:  # all that read it share the bytes
                rounded[value] = quantized_and_back(value, ranges.name(value), found, weights_of(ctx))
            layer.operands[position] = rounded[value]
        axis = weight_axis(layer)
        if axis is not None:
            weights = array_of(layer.operands[1], ctx)
            assert weights is not None
            round_weights(layer, weights, axis, of_layers[layer][0], weights_of(ctx))
