"""Deconvolutions of quantised tensors become convolutions, which have integer kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, i64
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.symbolic import Dim, numbers_of
from mlirt.dialects.tensor_types import dims, element_of, tensor
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.kernels.lib.deconvolution_phases import PhaseAxis, remainder_kernels, undilated
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.quantization.int8_deconvolution import IntegerDeconvolution, integer_deconvolution
from mlirt.passes.quantization.scalings import Refusal, reads_integers
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class ExpandQuantizedDeconvolutionPass(RulePass):
    """Rewrite deconvolutions between quantize layers as a convolution whose 8-bit results are interleaved.

    Output position `y` has `y + pre = s * a + r`: all positions with remainder `r` are a convolution of the input with
    every `s`-th tap of the kernel. One convolution computes all remainders as channels, with the activations and the
    quantization behind; a transposition of these puts them into their places, and a slice cuts off what the pads do.
    Input, weights and result have scales and zero points that are constants, one for all of input and result.

    Before:

        %a = trt.dequantize %q, %sx : 1x8x5x5
        %w = trt.dequantize %k, %sw : 8x4x2x2
        %c = trt.deconvolution %a, %w {stride = array<i64: 2, 2>} : (1x8x5x5, 8x4x2x2) -> 1x4x10x10
        %y = trt.quantize %c, %sy : 1x4x10x10

    After:

        %v = trt.dequantize %k', %sw : 16x8x1x1
        %c = trt.convolution %a, %v : (1x8x5x5, 16x8x1x1) -> 1x16x5x5
        %b = trt.quantize %c, %sy : 1x16x5x5
        %s = trt.shuffle %b {reshape_dims = 1x1x2x2x4x5x5}
        %t = trt.shuffle %s {first_transpose = array<i64: 0, 1, 4, 5, 2, 6, 3>}
        %y = trt.shuffle %t {reshape_dims = 1x4x10x10}
    """

    name = "expand-quantized-deconvolution"

    @rule(op(DeconvolutionOp).named("deconvolution"))
    def expand(self, m: Match, ctx: Context, deconvolution: DeconvolutionOp) -> Outcome:
        found = integer_deconvolution(deconvolution, ctx)
        if isinstance(found, Refusal):
            return found.reason if reads_integers(deconvolution) else None
        ending = found.ending
        m.replaces(ending.quantize, *reversed(ending.between), deconvolution)
        layers = LayerBuilder.in_front_of(ending.quantize, ctx, deconvolution)
        value = _convolution(layers, deconvolution, found)
        for one in ending.between:
            value = layers.value(ActivationOp.build_inferred([value], dict(one.properties)))
        quantize = ending.quantize
        type_ = tensor(element_of(quantize.output.type), dims(value.type))
        operands = [value, quantize.scale, quantize.zero_point]
        rounded = layers.value(QuantizeOp.build(operands=operands, result_types=[type_]))
        return _cropped(layers, _interleaved(layers, rounded, found.axes, deconvolution), found.axes, deconvolution)


def _convolution(layers: LayerBuilder, op: DeconvolutionOp, found: IntegerDeconvolution) -> SSAValue:
    """All remainders as channels, in the order [group, remainders.., channel of the group]."""
    import numpy as np

    axes, groups = found.axes, op.groups
    packed = remainder_kernels(undilated(found.weights.array, op.dilations()), axes, groups)
    strides = [axis.stride for axis in axes]

    def along_channels(array: Array) -> Array:
        """A number for each channel of the result, as one for each channel of the convolution."""
        each = array.reshape(groups, 1, -1)
        return np.broadcast_to(each, (groups, int(np.prod(strides)), each.shape[2])).reshape(-1)

    def dequantized(array: Array, scale: Array, role: str) -> SSAValue:
        operands = [layers.constant(array, role), layers.constant(scale.astype(np.float32), "scale"), None]
        axis: dict[str, Attribute] = {"axis": IntegerAttr(0, i64)} if scale.ndim else {}
        return layers.layer(DequantizeOp, operands, axis)

    scale, factor = found.weights.scale, found.factor
    if scale.ndim:
        scale, factor = along_channels(np.tile(scale, groups)), along_channels(factor)
    kernel = dequantized(packed, scale, "kernel")
    bias = None if found.bias is None else dequantized(along_channels(found.bias).astype(np.int32), factor, "bias")
    properties: dict[str, Attribute] = {
        "pre_padding": integer_list([axis.pre_padding for axis in axes]),
        "post_padding": integer_list(numbers_of(axis.post_padding for axis in axes)),
        "num_groups": IntegerAttr(groups, i64),
    }
    return layers.layer(ConvolutionOp, [op.input, kernel, bias], properties)


def _interleaved(layers: LayerBuilder, value: SSAValue, axes: Sequence[PhaseAxis], op: DeconvolutionOp) -> SSAValue:
    """The results of all remainders in their places."""
    if all(axis.stride == 1 for axis in axes):
        return value
    batch, channels, count = dims(value.type)[0], dims(op.output.type)[1], len(axes)
    strides, positions = [axis.stride for axis in axes], [axis.positions for axis in axes]
    assert isinstance(channels, int)
    split: list[Dim] = [batch, op.groups, *strides, channels // op.groups, *positions]
    places = [place for k in range(count) for place in (3 + count + k, 2 + k)]
    mixed = layers.transposed(layers.reshaped(value, split), [0, 1, 2 + count, *places])
    return layers.reshaped(mixed, [batch, channels, *(axis.positions * axis.stride for axis in axes)])


def _cropped(layers: LayerBuilder, whole: SSAValue, axes: Sequence[PhaseAxis], op: DeconvolutionOp) -> SSAValue:
    """The result without what the pads cut off."""
    wanted = dims(op.output.type)
    if dims(whole.type) == wanted:
        return whole
    properties: dict[str, Attribute] = {
        "start": DimsAttr.of([0, 0, *(axis.cut for axis in axes)]),
        "size": DimsAttr.of(wanted),
        "stride": DenseArrayBase.from_list(i64, [1] * len(wanted)),
    }
    return layers.layer(SliceOp, [whole, None, None, None, None], properties)
