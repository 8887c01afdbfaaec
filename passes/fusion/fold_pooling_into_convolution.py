"""Folds an average pooling into the weights of the convolution before it."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.integer_list import integers_or
from mlirt.dialects.symbolic import numbers_of
from mlirt.dialects.tensor_types import dims, element_of, is_float, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.deconvolution import DeconvolutionOp
from mlirt.dialects.trt.pooling import PoolingOp
from mlirt.dialects.window_arithmetic import PaddingMode, ShortInput
from mlirt.passes.fusion.pooled_windows import (
    OneWindow,
    PooledAxis,
    convolution,
    convolution_of_transposed,
    pooled_kernel,
    transposed,
)
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Windowed = ConvolutionOp | DeconvolutionOp
_FIRST = 2  # window axis of an image
_PLAIN = PaddingMode.EXPLICIT_ROUND_DOWN


@dataclass(frozen=True)
class FoldPoolingIntoConvolutionPass(RulePass):
    """Let a convolution give the means over windows of its results that an average pooling behind it takes.

    The mean of linear results is linear: a convolution with a larger window that moves by both strides. A deconvolution
    becomes one with a smaller stride, or a convolution. Only where that takes no more multiplications, the pooling has
    no padding, and nobody else reads the results. This reassociates sums, and nothing else.

    Before:

        %c = trt.convolution %x, %w : (tensor<1x3x9x9xf32>, tensor<8x3x2x2xf32>) -> tensor<1x8x8x8xf32>
        %y = trt.pooling average %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>} : .. -> tensor<1x8x4x4xf32>

    After:

        %y = trt.convolution %x, %v {stride = array<i64: 2, 2>} : (.., tensor<8x3x3x3xf32>) -> tensor<1x8x4x4xf32>
    """

    name = "fold-pooling-into-convolution"

    @rule(op(PoolingOp, op(Windowed).named("layer"), kind="average").named("pooling"))
    def fold(self, m: Match, pooling: PoolingOp, layer: Windowed) -> Outcome:
        if (reason := _obstacle(pooling, layer)) is not None:
            return reason
        found = _windows(pooling, layer)
        if found is None:
            return "the means are not as far apart as the cells of {layer}, or a multiple or part of it"
        kind, windows = found
        if prod(window.work for window in windows) > 1:
            return "windows overlap so much that it would take more multiplications"
        kernel, before = pooled_kernel(m.array(layer.kernel), windows), m.array(layer.kernel)
        if isinstance(layer, DeconvolutionOp) and kind is ConvolutionOp:
            kernel = kernel.swapaxes(0, 1)
        narrow = _finite(kernel, before)
        if narrow is None:
            return "the weights leave the range of their type"
        lists = {
            "stride": [window.stride for window in windows],
            "dilation": [window.dilation for window in windows],
            "pre_padding": [window.pre for window in windows],
            "post_padding": [window.post for window in windows],
        }
        weights = m.constant(narrow, "pooled", layer)
        return m.make(kind, layer.input, weights, layer.bias, num_groups=layer.num_groups, **lists)


def _obstacle(pooling: PoolingOp, layer: Windowed) -> str | None:
    axes = len(layer.sizes())
    types = [pooling.output.type, *(value.type for value in layer.operands)]
    if not all(is_float(element_of(one)) for one in types):
        return "its numbers are integers"
    if rank(layer.input.type) != axes + _FIRST or len(pooling.sizes()) != axes:
        return "they have other axes"
    if not all(isinstance(size, int) for one in types for size in dims(one)[_FIRST:]):
        return "its lengths are not known"
    if not isinstance(layer.kernel.owner, ConstantOp):
        return "the weights of {layer} are computed"
    modes = {pooling.padding_mode.data, layer.padding_mode.data}
    padded = any(pre or post for pre, post in pooling.written_padding())
    if modes != {_PLAIN} or padded or pooling.short_input.data is not ShortInput.REFUSED:
        return "it is padded"
    if any(step > 1 for step in pooling.dilations()):
        return "it is dilated"
    if isinstance(layer, DeconvolutionOp) and layer.groups != 1:
        return "{layer} has groups"
    return None


def _windows(pooling: PoolingOp, layer: Windowed) -> tuple[type[Windowed], list[OneWindow]] | None:
    """The layer that takes the place of both, and its windows."""
    axes = _axes(pooling, layer)
    if isinstance(layer, ConvolutionOp):
        return ConvolutionOp, [convolution(axis) for axis in axes]
    for kind, find in ((ConvolutionOp, convolution_of_transposed), (DeconvolutionOp, transposed)):
        found = [one for axis in axes if (one := find(axis)) is not None]
        if len(found) == len(axes):
            return kind, found
    return None


def _axes(pooling: PoolingOp, layer: Windowed) -> list[PooledAxis]:
    def lengths(value: SSAValue) -> list[int]:
        return numbers_of(dims(value.type)[_FIRST:])

    rows = zip(
        lengths(layer.input),
        lengths(pooling.output),
        layer.sizes(),
        layer.strides(),
        layer.dilations(),
        *zip(*layer.written_padding(), strict=True),
        pooling.sizes(),
        integers_or(pooling.stride, 1, len(pooling.sizes())),
        strict=True,
    )
    return [PooledAxis(*row) for row in rows]


def _finite(kernel: Array, like: Array) -> Array | None:
    """The kernel in the type of another one; None where it is not finite there."""
    import numpy as np

    with np.errstate(over="ignore"):
        narrow = kernel.astype(like.dtype)
    return narrow if np.isfinite(narrow.astype(np.float64)).all() else None
