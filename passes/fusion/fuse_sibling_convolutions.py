"""Horizontal fusion: narrow convolutions of one input become one wide convolution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.locations import names
from mlirt.dialects.sibling_layers import add_siblings
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class FuseSiblingConvolutionsPass(RulePass):
    """Join convolutions of one input with equal geometry and constant kernels, and slice the result.

    A kernel computes `lanes` channels at once, so a convolution of few channels leaves most of its work unused. Joining
    pays where the joined channels fill fewer such blocks than the parts do, and where each result element takes at
    least `min-work` multiplications, beside which the copy by the slices does not count.

    Before:

        %a = trt.convolution %x, %u : (tensor<1x64x8x8xf32>, tensor<4x64x3x3xf32>) -> tensor<1x4x6x6xf32>
        %b = trt.convolution %x, %v : (tensor<1x64x8x8xf32>, tensor<2x64x3x3xf32>) -> tensor<1x2x6x6xf32>

    After:

        %j = trt.convolution %x, %uv : (tensor<1x64x8x8xf32>, tensor<6x64x3x3xf32>) -> tensor<1x6x6x6xf32>
        %a = trt.slice %j {start = [0, 0, 0, 0], size = [1, 4, 6, 6]} : ...
        %b = trt.slice %j {start = [0, 4, 0, 0], size = [1, 2, 6, 6]} : ...
    """

    name = "fuse-sibling-convolutions"

    lanes: int = option(16, at_least=1)
    min_work: int = option(64, at_least=0)

    @rule(op(ConvolutionOp).named("first"))
    def join(self, m: Match, ctx: Context, first: ConvolutionOp) -> Outcome:
        siblings = m.analysis(_families).get(first)
        if siblings is None:
            return None
        if not self._pays(siblings):
            return f"joining it with {len(siblings) - 1} others does not pay"
        if isinstance(module := first.get_toplevel_object(), ModuleOp):
            add_siblings(module, [name for one in siblings for name in names(one.location)])
        kernel, bias = _weights(siblings, ctx)
        weights = m.constant(kernel, "kernel", *siblings)
        operands = [first.input, weights, None if bias is None else m.constant(bias, "bias", *siblings)]
        m.about = joined = m.insert(ConvolutionOp.build_inferred(operands, first.properties), *siblings)
        starts = accumulate(map(_channels, siblings), initial=0)
        parts = [m.insert(_slice(joined, one, start), one).output for one, start in zip(siblings, starts, strict=False)]
        for one, part in zip(siblings[1:], parts[1:], strict=True):
            part.name_hint = one.output.name_hint
            one.output.replace_all_uses_with(part)
        m.drop(*siblings[1:])
        return parts[0]

    def _pays(self, siblings: Sequence[ConvolutionOp]) -> bool:
        counts = [_channels(op) for op in siblings]
        apart, joined = sum(-(-count // self.lanes) for count in counts), -(-sum(counts) // self.lanes)
        kernel = dims(siblings[0].kernel.type)
        work = 1
        for length in kernel[1:]:
            work *= length if isinstance(length, int) else 1
        return joined < apart and work >= self.min_work


def _channels(op: ConvolutionOp) -> int:
    count = dims(op.kernel.type)[0]
    assert isinstance(count, int)
    return count


def _families(block: Block) -> Mapping[Operation, Sequence[ConvolutionOp]]:
    """Convolutions that differ in the values and the number of their kernels alone, by the first of them."""
    families: dict[object, list[ConvolutionOp]] = {}
    for one in block.ops:
        if not isinstance(one, ConvolutionOp) or one.groups != 1 or not isinstance(one.kernel.owner, ConstantOp):
            continue
        if one.bias is not None and not isinstance(one.bias.owner, ConstantOp):
            continue
        key = (one.input, dims(one.kernel.type)[1:], frozenset(one.properties.items()))
        families.setdefault(key, []).append(one)
    return {family[0]: family for family in families.values() if len(family) > 1}


def _weights(siblings: Sequence[ConvolutionOp], ctx: Context) -> tuple[Array, Array | None]:
    import numpy as np

    kernels = [array for op in siblings if (array := array_of(op.kernel, ctx)) is not None]
    biases = [None if op.bias is None else array_of(op.bias, ctx) for op in siblings]
    kernel = np.concatenate(kernels)
    if all(bias is None for bias in biases):
        return kernel, None
    pairs = zip(biases, kernels, strict=True)
    return kernel, np.concatenate([np.zeros(len(k), k.dtype) if b is None else b for b, k in pairs])


def _slice(joined: ConvolutionOp, op: ConvolutionOp, start: int) -> SliceOp:
    axes = rank(op.output.type)
    axis = axes - len(op.sizes()) - 1
    starts = [start if k == axis else 0 for k in range(axes)]
    return SliceOp.build_inferred(
        [joined.output, None, None, None, None],
        {"start": DimsAttr.of(starts), "size": DimsAttr.of(dims(op.output.type)), "stride": integer_list([1] * axes)},
        op.location,
    )
