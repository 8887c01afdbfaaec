"""Gives a network that was trained in float32 the scales with which its products are computed on bytes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.tensor_op import TensorOp
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.calibration_cache import read_cache
from mlirt.passes.quantization.explicit_networks import is_explicit, warn_of_ranges
from mlirt.passes.quantization.integer_choice import IntegerChoice
from mlirt.passes.quantization.integer_operands import weight_axis
from mlirt.passes.quantization.scale_insertion import dequantized_weights, quantized_and_back
from mlirt.passes.quantization.tensor_ranges import LARGEST, RANGES, TensorRanges, ranges_in, set_ranges


@dataclass(frozen=True)
class InsertScalesPass(ModulePass):
    """Round the operands of layers that have integer kernels to 8 bits, with scales from the tensors' ranges.

    The ranges are the module's `trt.ranges`, or those of a calibration cache, `cache=FILE`. Quantised are: the
    input of convolutions, fully connected layers and products whose weights are constant, and the weights, with one
    scale for each output channel; residual additions, as far as no product of the addition computes the operand in its
    own epilogue; average poolings between quantised layers. Everything else follows from these pairs. Deconvolutions
    and depthwise convolutions would not be faster, and stay float.

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
            set_ranges(op, {name: scale * LARGEST for name, scale in _read(self.cache).items()})
        ranges = ranges_in(op)
        if not ranges:
            return
        del op.attributes[RANGES]
        if is_explicit(op):
            warn_of_ranges()
            return
        _Insertion(ctx, TensorRanges(op, ranges)).run(op)


def _read(path: str) -> dict[str, float]:
    try:
        return read_cache(Path(path).read_bytes())
    except OSError as error:
        raise InvalidInputError(f"calibration cache {path}: {error.strerror}") from error


@dataclass
class _Insertion:
    ctx: Context
    ranges: TensorRanges

    def run(self, module: ModuleOp) -> None:
        choice = IntegerChoice(module, self.ranges)
        rounded: dict[SSAValue, SSAValue] = {}
        for layer, positions in choice.operands().items():
            for position in positions:
                layer.operands[position] = self._rounded(layer.operands[position], rounded)
            axis = weight_axis(layer)
            if axis is not None:
                self._round_weights(layer, axis)

    def _rounded(self, value: SSAValue, known: dict[SSAValue, SSAValue]) -> SSAValue:
        """The 8-bit version of a tensor, which all its readers share."""
        if value not in known:
            range_ = self.ranges.of(value)
            assert range_ is not None
            scale = range_ / LARGEST or 1.0  # of a tensor of zeros, which any scale fits
            known[value] = quantized_and_back(value, self.ranges.name(value), scale, weights_of(self.ctx))
        return known[value]

    def _round_weights(self, layer: TensorOp, axis: int) -> None:
        weights = array_of(layer.operands[1], self.ctx)
        assert weights is not None
        layer.operands[1] = dequantized_weights(layer, weights, axis, weights_of(self.ctx), f"{name_of(layer)}.kernel")
