"""Folds batch normalisation and other scales per channel into the weights of convolutions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.scale import ScaleOp
from mlirt.passes.fusion.channel_scaling import Affine, Weighted, affine_of, channel_count, scaled_kernel
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, value

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


LAYER = op(Weighted).named("layer")


@dataclass(frozen=True)
class FoldScaleIntoConvolutionPass(RulePass):
    """Multiply a per-channel scale into the kernel before it, and add a per-channel shift to the bias.

    The scale is a layer `trt.scale` without power, or an elementwise sum, prod, sub or div with a constant; the layer
    before is a convolution, deconvolution or fully connected layer with constant weights, whose result only the scale
    reads. A matrix product with a constant right-hand side takes a scale, but no shift. Weights stay as they are where
    the scaled ones leave the range of their type.

    Before:

        %c = trt.convolution %x, %w : ...
        %y = trt.scale %c shift(%b : tensor<8xf32>) scale(%a : tensor<8xf32>) : ...

    After:

        %y = trt.convolution %x, %aw, %b : ...
    """

    name = "fold-scale-into-convolution"

    @rule((op(ScaleOp, LAYER, ...) | op(ElementwiseOp, LAYER, value()).commuting()).named("scale"))
    def fold(self, m: Match, ctx: Context, scale: ScaleOp | ElementwiseOp, layer: Weighted) -> Outcome:
        result = layer.results[0]
        if not all(map(is_float, (element_of(result.type), element_of(layer.operands[1].type)))):
            return "{layer} computes with integers"
        affine = affine_of(scale, result, _channel_axis(layer), ctx)
        if affine is None:
            return "it is no constant scale and shift per channel"
        weights = _scaled(layer, affine, ctx)
        if weights is None:
            return "the weights of {layer} are not constant, or take no such scale or shift"
        return m.insert(_with_weights(m, layer, *weights))


def _channel_axis(layer: Weighted) -> int:
    """Which axis of the result, counted from the end, has one channel per kernel."""
    if isinstance(layer, ConvolutionOp | DeconvolutionOp):
        return -1 - len(layer.sizes())
    return -3 if isinstance(layer, FullyConnectedOp) else -1


def _scaled(layer: Weighted, affine: Affine, ctx: Context) -> tuple[Array, Array | None] | None:
    """The new kernel and bias; None where they are not constant, or not finite in their type."""
    import numpy as np

    bias_operand = None if isinstance(layer, MatrixMultiplyOp) else layer.bias
    kernel = array_of(layer.operands[1], ctx)
    old_bias = None if bias_operand is None else array_of(bias_operand, ctx)
    if kernel is None or (bias_operand is not None and old_bias is None):
        return None
    if isinstance(layer, MatrixMultiplyOp) and np.any(affine.shift):
        return None
    scaled = scaled_kernel(layer, kernel, affine.scale)
    if scaled is None:
        return None
    if isinstance(layer, MatrixMultiplyOp):
        return (scaled, None) if np.isfinite(scaled).all() else None
    bias = (0 if old_bias is None else old_bias.astype(np.float64)) * affine.scale + affine.shift
    with np.errstate(over="ignore"):
        narrow = np.broadcast_to(bias, (channel_count(layer, kernel),)).astype(kernel.dtype)
    has_bias = old_bias is not None or bool(np.any(narrow))
    finite = np.isfinite(scaled).all() and np.isfinite(narrow).all()
    return (scaled, narrow if has_bias else None) if finite else None


def _with_weights(m: Match, layer: Weighted, kernel: Array, bias: Array | None) -> Weighted:
    """The layer with its new weights."""
    operands: list[SSAValue | None] = [*layer.operands[:2], *([] if isinstance(layer, MatrixMultiplyOp) else [None])]
    changed = {1: (kernel, "kernel")} if kernel is not array_of(layer.operands[1], m.ctx) else {}
    changed |= {} if bias is None else {2: (bias, "bias")}
    for position, (array, role) in changed.items():
        operands[position] = m.constant(array, role, layer)
    return type(layer).build(operands=operands, properties=layer.properties, result_types=[m.root.results[0].type])
