"""Groups of a few channels are computed together, as whole vectors or tiles of channels with zeros between them."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.tensor_types import byte_width, dims, element_of
from mlirt.passes.layout.convolution_rewriting import kernel_of
from mlirt.passes.options import option
from mlirt.passes.rules import Match, Outcome, RulePass, constant, op, rule

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

# Vectors multiply so many zeros in the time in which loops over single channels do without them.
_MAX_MERGED_GROUPS = 32
# Pairs of channels that have weights, zeros included, while an engine is built; kernels keep the blocks that they need.
_MAX_MERGED_PAIRS = 2**21
# Channels of a product on matrix units that take no less time with fewer of them.
_TILE, _PIECE = 64, 32
_HALF = 2  # bytes


@dataclass(frozen=True)
class MergeConvolutionGroupsPass(RulePass):
    """Merge as many groups of a convolution of images as make whole vectors of `lanes` channels, or all of them.

    With `lanes=0` groups become tiles of matrix units, where kernels have elements that all of these multiply: as many
    groups are merged as take the fewest products, zeros and what tiles are filled up with included. An infinite number
    then makes the results of the groups that it is merged with NaN, as 0 * inf is.

    Only constant kernels, and no depthwise ones, which have vectors of groups. `merged_groups` tells kernels which
    products are with zeros.

    Before: `%y = fused.convolution %x, %k {groups = 32, ..} : (1x128x8x8, 128x4x3x3) -> 1x128x8x8`
    After:  `%y = fused.convolution %x, %k' {groups = 8, merged_groups = 4, ..} : (1x128x8x8, 128x16x3x3) -> 1x128x8x8`
    """

    name = "merge-convolution-groups"

    lanes: int = option(16, at_least=0)

    @rule(op(ConvolutionOp, kernel=constant("kernel")).named("convolution"))
    def merge(self, m: Match, convolution: ConvolutionOp, kernel: SSAValue) -> Outcome:
        groups = convolution.groups.value.data
        outputs, inputs, *window = dims(kernel.type)
        if len(window) != 2 or not isinstance(outputs, int) or not isinstance(inputs, int):
            return None
        if convolution.transposed.value.data or (inputs == 1 and outputs == groups):
            return "it is a deconvolution, or has vectors of groups"
        if self.lanes:
            count = merged(groups, inputs, outputs // groups, self.lanes)
        elif byte_width(element_of(kernel.type)) > _HALF:
            return "matrix units read halves and bytes"
        else:
            count = merged_into_tiles(groups, inputs, outputs // groups)
        if count == 1:
            return None
        array = _with_zeros(m.array(kernel), groups, count)
        convolution.operands[1] = kernel_of(m, kernel, array, "of merged groups")
        convolution.properties["groups"] = IntegerAttr(groups // count, i64)
        convolution.properties["merged_groups"] = IntegerAttr(count, i64)
        return convolution


def merged(groups: int, inputs: int, outputs: int, lanes: int) -> int:
    """How many of the groups, with so many channels each, are computed as one; 1 where merging does not help."""
    divisors = [count for count in range(1, groups + 1) if groups % count == 0]
    whole = [count for count in divisors if count * inputs % lanes == 0 and count * outputs % lanes == 0]
    count = (whole or [groups])[0]
    # A vector of results is multiplied with the blocks of the groups that it meets alone.
    met = min(count, -(-lanes // outputs) + 1) * inputs
    zeros = -(-met // lanes) * lanes / inputs
    pairs = groups * outputs * count * inputs
    is_worth = count <= _MAX_MERGED_GROUPS or (zeros <= _MAX_MERGED_GROUPS and pairs <= _MAX_MERGED_PAIRS)
    return count if is_worth else 1


def merged_into_tiles(groups: int, inputs: int, outputs: int) -> int:
    """How many of the groups, with so many channels each, take the fewest products as one on matrix units."""

    def products(count: int) -> int:
        sides = (max(_TILE, -(-count * channels // _PIECE) * _PIECE) for channels in (inputs, outputs))
        return groups // count * prod(sides)

    divisors = [count for count in range(1, min(groups, _MAX_MERGED_GROUPS) + 1) if groups % count == 0]
    return min(divisors, key=products)


def _with_zeros(kernel: Array, groups: int, count: int) -> Array:
    """`[k, count * c, r..]` from `[k, c, r..]`: zeros for the inputs of the groups that an output is merged with."""
    import numpy as np

    outputs, inputs, *window = kernel.shape
    split = kernel.reshape(groups // count, count, outputs // groups, inputs, *window)
    result = np.zeros((groups // count, count, outputs // groups, count, inputs, *window), kernel.dtype)
    for position in range(count):
        result[:, position, :, position] = split[:, position]
    return result.reshape(outputs, count * inputs, *window)
