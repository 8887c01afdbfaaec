"""Fuses sums over all pixels into the convolution before them, which adds up the results of each of its tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32
from xdsl.ir import Region

from mlirt.dialects.combine import ReduceKind
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.fused_op import IndexOp, SizeOp, YieldOp, copy_region, identity_region, is_identity, yielded
from mlirt.dialects.fused.pooling import FIRST, PoolingAttr, TotalsAttr
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.window import WindowOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.target import HOPPER, Target
from mlirt.dialects.tensor_types import dims, tensor
from mlirt.passes.fusion.pooled_by_warps import NO_TILE, fits_tiles, obstacle_for_warps
from mlirt.passes.fusion.scalar_bodies import tidy, unconverted
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, some

_TILE = (2, 4, 8)  # rows of pixels of a volume in depth and height, and of an image
_WIDTH, _NARROW = 32, 16  # pixels of a row, of which twice as many rows
_LANES = 16  # threads that add up a channel
CONVOLUTION = op(ConvolutionOp).named("convolution")


@dataclass(frozen=True)
class FuseConvolutionTotalsPass(RulePass):
    """Let a convolution add up its results where nobody but a sum over all their pixels reads them.

    A convolution or deconvolution of halves whose results the matrix units of warps compute from planes has one sum in
    single precision for each tile and channel, which the reduction adds up. What that makes of each result is done in
    the epilogue. A pooling of windows that share no element may lie between both, of numbers that are not rounded.

    Before:

        %c = fused.convolution %x, %w { max(acc, 0) } : tensor<1x8x40x40xf16>
        %y = fused.reduction add(%c) [d0, d1, d2, d3] over 40, 40 : tensor<1x8xf32>

    After:

        %c = fused.convolution %x, %w {totals = #fused.totals<[8, 32] of [40, 40]>} { max(acc, 0) } : (..)
             -> tensor<1x8x5x2xf32>
        %y = fused.reduction add(%c) [d0, d1, d2, d3] over 5, 2 : tensor<1x8xf32>
    """

    name = "fuse-convolution-totals"

    arch: str = HOPPER
    device: str = ""

    @rule(op(ReductionOp, inputs=some(CONVOLUTION)).named("reduction"))
    def of_results(self, m: Match, reduction: ReductionOp, convolution: ConvolutionOp) -> Outcome:
        return self._fused(m, reduction, convolution, None)

    @rule(op(ReductionOp, inputs=some(op(WindowOp, CONVOLUTION, ...).named("window"))).named("reduction"))
    def of_windows(self, m: Match, reduction: ReductionOp, window: WindowOp, convolution: ConvolutionOp) -> Outcome:
        return self._fused(m, reduction, convolution, window)

    def _fused(self, m: Match, reduction: ReductionOp, convolution: ConvolutionOp, window: WindowOp | None) -> Outcome:
        count = len(convolution.spatial())
        windows = [1] * count if window is None else list(integers(window.window))
        if (reason := _obstacle(reduction, convolution, window)) is not None:
            return reason
        if (reason := obstacle_for_warps(convolution, windows)) is not None:
            return reason
        pixels = dims(reduction.inputs[0].type)
        box = _box([int(size) for size in pixels[FIRST:]], convolution, windows)  # pyright: ignore[reportArgumentType]
        if box is None:
            return "windows do not fit into tiles"
        totals = TotalsAttr.of(box, [int(size) for size in pixels[FIRST:]])  # pyright: ignore[reportArgumentType]
        pooling = None if window is None else PoolingAttr.of(window.kind.data, windows)
        properties = {**convolution.properties, "totals": totals} | ({} if pooling is None else {"pooling": pooling})
        made = ConvolutionOp.build(
            operands=[convolution.input, convolution.kernel, list(convolution.extras)],
            properties=properties,
            result_types=[tensor(f32, (*pixels[:FIRST], *totals.counts()))],
            regions=[_epilogue(convolution, reduction, is_pooled=window is not None)],
        )
        made.attributes = dict(convolution.attributes)
        if not fits_tiles(made, Target("cuda", arch=self.arch, device=self.device)):
            made.erase()
            return NO_TILE
        summed = m.insert(made, convolution, *([] if window is None else [window]))
        space = list(reduction.reduced.dims())
        first = len(dims(reduction.output.type))
        for axis, size in enumerate(totals.counts(), start=FIRST):
            space[int(str(reduction.access.data[0].indices()[axis])[1:]) - first] = size
        epilogue, extras = reduction.detach_region(reduction.epilogue), list(reduction.extras)
        return m.insert(
            ReductionOp(
                reduction.kind.data,
                [summed.output],
                list(reduction.access),
                space,
                reduction.output.type,
                identity_region(f32),
                epilogue,
                extras,
                list(reduction.extra_access),
            ),
            reduction,
        )


def _obstacle(reduction: ReductionOp, convolution: ConvolutionOp, window: WindowOp | None) -> str | None:
    """Why a reduction is not one over all pixels of what a convolution, or a pooling behind it, gives."""
    if (
        len(reduction.inputs) != 1
        or reduction.kind.data is not ReduceKind.ADD
        or accumulator_type(reduction.epilogue) != f32
    ):
        return "it does not add up floats"
    if window is not None and not _only_converts(reduction.body):
        return "what it adds up is computed from what it reads"
    if convolution.pooling is not None or convolution.totals is not None:
        return "the convolution pools already"
    bodies = [*convolution.epilogue.block.ops, *reduction.body.block.ops]
    if any(isinstance(inner, IndexOp | SizeOp) for inner in bodies):
        return "what is done to the sums depends on the pixel"
    places = {f"d{axis}" for axis in range(FIRST, FIRST + len(convolution.spatial()))}
    if any({str(index) for index in access.indices()} - {"0", "d0", "d1"} for access in convolution.access):
        return "what is done to the sums depends on the pixel"
    if window is not None and (window.extras or not _only_converts(window.epilogue) or not _lie_side_by_side(window)):
        return "the pooling computes more, or its windows overlap or are padded"
    indices, first = [str(index) for index in reduction.access.data[0].indices()], len(dims(reduction.output.type))
    names = {f"d{axis}" for axis in range(first, first + len(reduction.reduced.dims()))}
    whole = len(places) == len(indices) - FIRST and len(set(indices)) == len(indices)
    if not whole or not set(indices[FIRST:]) <= names or not names <= set(indices):
        return "it is no sum over all pixels"
    extents = dict(zip(sorted(names, key=lambda one: int(one[1:])), reduction.reduced.dims(), strict=True))
    same = all(extents.get(name, size) == size for name, size in zip(indices, _sizes(reduction), strict=True))
    return None if same else "it is no sum over all pixels"


def _sizes(reduction: ReductionOp) -> Sequence[Dim]:
    return dims(reduction.inputs[0].type)


def _lie_side_by_side(window: WindowOp) -> bool:
    sizes = integers(window.window)
    whole = window.axes() == tuple(range(FIRST, FIRST + len(sizes))) and window.is_inside()
    return whole and integers(window.stride) == sizes and all(one == 1 for one in integers(window.dilation))


def _box(pixels: Sequence[int], convolution: ConvolutionOp, windows: Sequence[int]) -> tuple[int, ...] | None:
    """Windows of a tile of the matrix units of warps along each axis, wide or narrow, as fills more of the last one."""
    strides = [stride if convolution.transposed.value.data else 1 for stride, _, _, _ in convolution.spatial()]
    width = pixels[-1] * windows[-1]
    wide, narrow = (-(-width // (size * strides[-1])) * size for size in (_WIDTH, _NARROW))
    last = _NARROW if narrow < wide else _WIDTH
    rows = _WIDTH // last
    tile = [_TILE[0], _TILE[1] * rows, last] if len(pixels) == len(_TILE) else [_TILE[2] * rows, last]
    sizes = [own * stride for own, stride in zip(tile, strides, strict=True)]
    if any(size % window for size, window in zip(sizes, windows, strict=True)):
        return None
    box = tuple(size // window for size, window in zip(sizes, windows, strict=True))
    return box if prod(box) % _LANES == 0 else None


def _only_converts(region: Region) -> bool:
    """Whether a body gives its only argument, perhaps as another type of float."""
    value = unconverted(yielded(region)[0])
    return len(region.block.args) == 1 and (is_identity(region) or value is region.block.args[0])


def _epilogue(convolution: ConvolutionOp, reduction: ReductionOp, *, is_pooled: bool) -> Region:
    """What becomes of a sum of products: the epilogue, and what the reduction makes of it before it adds up.

    Behind a pooling numbers are compared or averaged in single precision, not as halves.
    """
    found = convolution.epilogue.clone()
    block, last = found.block, found.block.last_op
    assert isinstance(last, YieldOp)
    value = last.values[0]
    block.erase_op(last)
    if is_pooled and isinstance(value.owner, arith.TruncFOp) and value.owner.input.type == f32:
        value = value.owner.input
    elif is_pooled:
        block.add_op(wide := arith.ExtFOp(value, f32))
        value = wide.result
    else:
        (value,) = copy_region(reduction.body, [value], block.add_op)
    block.add_op(YieldOp(operands=[[value]]))
    tidy(block)
    return found


__all__ = ["FuseConvolutionTotalsPass"]
