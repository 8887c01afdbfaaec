"""Fuses a pooling into the convolution before it, which pools its results before it stores them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Region

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.access import AccessAttr
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.fused_op import IndexOp, is_identity, yielded
from mlirt.dialects.fused.pooling import FIRST, PoolingAttr
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import floor_div, symbols
from mlirt.dialects.target import HOPPER, Target
from mlirt.dialects.tensor_types import dims, element_of, is_float
from mlirt.passes.fusion.pooled_by_warps import NO_TILE, fits_tiles, obstacle_for_warps
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

# Sizes of windows of which every tile of a kernel can hold whole ones.
_SIZES = (1, 2, 4)


@dataclass(frozen=True)
class FuseConvolutionPoolingPass(RulePass):
    """Let a convolution pool where nobody but a pooling behind it reads its result, which then never is in memory.

    The windows lie side by side: stride and window are 1, 2 or 4 on each axis, without padding and dilation. Numbers
    have one type from the sums to the result, and what the convolution does to them does not depend on the pixel. Along
    an axis of a dilated convolution windows have size 1.
    With `in-blocks` only convolutions with blocks of channels do so: those have kernels whose tiles hold whole windows.
    With `by-warps` convolutions and deconvolutions of halves do so whose results the matrix units of warps compute, of
    known sizes, where they take less time than others that do not pool, and the pooling behind them. The largest of
    results is that of halves as well as of the sums in single precision.

    Before:

        %c = fused.convolution %x, %w { max(acc, 0) } : tensor<1x4x8x8xf32>
        %y = fused.window max %c {window = array<i64: 2, 2>, stride = array<i64: 2, 2>, ..} : tensor<1x4x4x4xf32>

    After:

        %y = fused.convolution %x, %w {pooling = #fused.pooling<max [2, 2]>} { max(acc, 0) } : tensor<1x4x4x4xf32>
    """

    name = "fuse-convolution-pooling"

    in_blocks: bool = False
    by_warps: bool = False
    arch: str = HOPPER
    device: str = ""

    @rule(op(WindowOp, op(ConvolutionOp).named("convolution"), ...).named("window"))
    def fuse(self, m: Match, window: WindowOp, convolution: ConvolutionOp) -> Outcome:
        if (reason := self._obstacle(window, convolution)) is not None:
            return reason
        made = ConvolutionOp.build(
            operands=[convolution.input, convolution.kernel, list(convolution.extras)],
            properties={
                **convolution.properties,
                "pooling": PoolingAttr.of(window.kind.data, integers(window.window)),
            },
            result_types=[window.output.type],
            regions=[convolution.epilogue.clone()],
        )
        made.attributes = dict(convolution.attributes)
        if self.by_warps and not fits_tiles(made, Target("cuda", arch=self.arch, device=self.device)):
            made.erase()
            return NO_TILE
        return m.insert(made)

    def _obstacle(self, window: WindowOp, convolution: ConvolutionOp) -> str | None:
        """Why a pooling is not that of the convolution before it; None where it is."""
        if self.in_blocks and not is_blocked(convolution.output.type):
            return "the convolution has no blocks of channels"
        if self.by_warps and (reason := _obstacle_for_warps(window, convolution)) is not None:
            return reason
        types = {element_of(window.output.type)} if self.by_warps else _types(window, convolution)
        if types != {element_of(window.output.type)} or not is_float(element_of(window.output.type)):
            return "their numbers have several types"
        if window.extras or not (is_identity(window.epilogue) or (self.by_warps and _is_rounding(window.epilogue))):
            return "the pooling computes more"
        if not _lie_side_by_side(window):
            return "the windows overlap, are padded, or do not fit into tiles"
        if convolution.pooling is not None or (convolution.transposed.value.data and not self.by_warps):
            return "the convolution is a deconvolution, or pools already"
        steps = zip(convolution.spatial(), integers(window.window), strict=True)
        if any(dilation > 1 and size > 1 for (_, dilation, _, _), size in steps):
            return "the convolution is dilated along a window"
        return "what is done to the sums depends on the pixel" if _depends_on_pixel(convolution) else None


def _obstacle_for_warps(window: WindowOp, convolution: ConvolutionOp) -> str | None:
    if element_of(window.output.type) != element_of(convolution.output.type):
        return "their numbers have several types"
    return obstacle_for_warps(convolution, integers(window.window))


def _is_rounding(region: Region) -> bool:
    """Whether all that is done to a number is its conversion to the type of the result."""
    value, args = yielded(region)[0], region.block.args
    return len(args) == 1 and isinstance(value.owner, arith.TruncFOp) and value.owner.input is args[0]


def _types(window: WindowOp, convolution: ConvolutionOp) -> set[object]:
    accumulators = accumulator_type(window.epilogue), accumulator_type(convolution.epilogue)
    return {*accumulators, element_of(convolution.input.type), element_of(convolution.output.type)}


def _lie_side_by_side(window: WindowOp) -> bool:
    """Whether the windows share no element, and none reaches beyond the input or needs more of it than tiles hold."""
    sizes = integers(window.window)
    if window.axes() != tuple(range(FIRST, FIRST + len(sizes))) or any(size not in _SIZES for size in sizes):
        return False
    if integers(window.stride) != sizes or any(step != 1 for step in integers(window.dilation)):
        return False
    pairs = zip(dims(window.input.type)[FIRST:], dims(window.output.type)[FIRST:], sizes, strict=False)
    fits = all(result == floor_div(length, size) for length, result, size in pairs)
    return fits and not any((*window.pre_padding.dims(), *window.post_padding.dims()))


def _depends_on_pixel(convolution: ConvolutionOp) -> bool:
    places = {f"d{FIRST + axis}" for axis in range(len(convolution.spatial()))}
    asks = any(isinstance(op, IndexOp) for op in convolution.epilogue.block.ops)
    return asks or any(_names(access) & places for access in convolution.access)


def _names(access: AccessAttr) -> set[str]:
    return {name for index in access.indices() for name in symbols(index)}
