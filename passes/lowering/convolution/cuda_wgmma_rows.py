"""Convolutions of images with few channels on Hopper GPUs, for example of the pixels of a picture.

The input is copied first: channels are filled up with zeros so that positions of the window are 16 bytes apart, rows
with the padding. Then all taps along a row of the window, with their channels, are neighbours in memory, and count as
the channels of a window one pixel wide that moves by the stride: neighbouring positions overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.core import LoadOp
from mlirt.dialects.kernel.fragment import FragmentOp, StoreFragmentOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, rank
from mlirt.passes.lowering.convolution.cuda_wgmma import (
    filters,
    images_of,
    is_within_reach,
    kind_of,
    pads_with_zeros,
    pixels_of,
)
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.trt_to_fused.scalar_builder import scalar_type
from mlirt.passes.lowering.typical_sizes import typical, typical_values
from mlirt.passes.lowering.warpgroups.group_choice import GroupWork, cost_of, names_of, tile_of
from mlirt.passes.lowering.warpgroups.group_product import GroupProduct
from mlirt.passes.lowering.warpgroups.group_sizes import GroupSizes
from mlirt.passes.lowering.warpgroups.group_tile import GroupTile
from mlirt.passes.lowering.warpgroups.kinds import Kind
from mlirt.passes.lowering.warpgroups.row_epilogue import (
    ResultShape,
    RowEpilogue,
    bytes_ahead,
    is_pointwise,
    large_extras,
    result_width,
    scalar_operations,
    width_of_results,
)
from mlirt.passes.lowering.warpgroups.sources import MappedMemory, WindowShape, WindowSource

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 19

_PIECE = 16  # bytes that positions of the window are multiples of
_FEWEST_PIXELS = 64
_POWERS = tuple(2**k for k in range(8))
# Microseconds, and bytes per microsecond, of the copy; seven times measured, estimates are 5 % off.
_COPY_LAUNCH, _COPIED = 1.5, 2.0e6


@dataclass(frozen=True)
class Rows:
    """The copy of the input: `width` pixels of `channels` in a row, of which `line` elements are multiplied at once."""

    channels: int
    width: int
    line: int
    kind: Kind

    @staticmethod
    def of(op: ConvolutionOp, kind: Kind) -> Rows | None:
        """None where the taps along a row of the window are no neighbours."""
        piece = _PIECE // byte_width(kind.element)
        count, taps, length = dims(op.input.type)[1], dims(op.kernel.type)[-1], dims(op.output.type)[-1]
        stride, dilation, _, _ = op.spatial()[-1]
        if not isinstance(count, int) or not isinstance(taps, int) or not isinstance(length, int):
            return None
        channels = next((size for size in _POWERS if size >= count and stride * size % piece == 0), 0)
        if not channels or channels > kind.depth or (dilation != 1 and taps > 1):
            return None
        kind = kind.fitting(taps * channels * byte_width(kind.element))
        line = -(-taps * channels // kind.depth) * kind.depth
        whole = max(1, piece // channels)  # rows start at multiples too
        return Rows(channels, -(-((length - 1) * stride + line // channels) // whole) * whole, line, kind)


def choices(op: Operation, lowering: Lowering) -> Sequence[str]:
    """The configurations that apply to a convolution, the cheapest first."""
    assert isinstance(op, ConvolutionOp)
    return names_of(_work(op, lowering))


def cost(op: Operation, lowering: Lowering, choice: str) -> float:
    """Microseconds that the copy and the convolution take, about."""
    assert isinstance(op, ConvolutionOp)
    work, kind = _work(op, lowering), kind_of(op, lowering)
    if work is None or kind is None or (rows := Rows.of(op, kind)) is None:
        return float("inf")
    copied = typical(product(_copied(op, rows)), typical_values(lowering.block)) * byte_width(kind.element)
    return cost_of(work, choice) + _COPY_LAUNCH + copied / _COPIED


def lower(op: Operation, lowering: Lowering) -> bool:
    assert isinstance(op, ConvolutionOp)
    tile = tile_of(_work(op, lowering), lowering.choice(op))
    if tile is None:
        return False
    _build(op, tile, lowering)
    return True


def _work(op: ConvolutionOp, lowering: Lowering) -> GroupWork | None:
    """What there is to do; None where the tactic does not apply."""
    kind, weights = kind_of(op, lowering), lowering.constant_array(op.kernel)
    if kind is None or weights is None or accumulator_type(op.epilogue) != kind.sums or not is_pointwise(op):
        return None
    plain = not op.transposed.value.data and op.groups.value.data == 1 and rank(op.input.type) in (4, 5)
    if not plain or not is_within_reach(op) or not pads_with_zeros(op) or images_of(op, lowering).fits():
        return None
    rows = Rows.of(op, kind)
    if rows is None or not _lines(op, rows, op.input).fits():
        return None
    pixels = typical(pixels_of(op), typical_values(lowering.block))
    if pixels < _FEWEST_PIXELS:
        return None
    return GroupWork(
        pixels,
        weights.shape[0],
        1,
        _steps(weights, rows),
        True,
        extras=large_extras(op, op.extras),
        operations=scalar_operations(op),
        width=result_width(op),
        ahead=bytes_ahead(op, op.extras),
        line=rows.kind.line,
    )


def _steps(weights: Array, rows: Rows) -> int:
    """Tiles along the depth."""
    return rows.line // rows.kind.depth * weights[0, 0, ..., 0].size


def _copied(op: ConvolutionOp, rows: Rows) -> tuple[Dim, ...]:
    """The sizes of the copy: image, rows, pixels, channels."""
    sizes = dims(op.input.type)
    return (sizes[0], *sizes[2:-1], rows.width, rows.channels)


def _lines(op: ConvolutionOp, rows: Rows, buffer: SSAValue) -> MappedMemory:
    """The copy as images whose pixels are the positions of the window along a row."""
    copied = _copied(op, rows)
    steps = [product(copied[axis + 1 :]) for axis in range(len(copied))]
    steps[-2] = op.spatial()[-1][0] * rows.channels
    sizes = (*copied[:-2], dims(op.output.type)[-1], rows.line)
    return MappedMemory(buffer, rows.kind.element, 0, sizes, tuple(steps))


def _build(op: ConvolutionOp, tile: GroupTile, lowering: Lowering) -> None:
    kind, weights = kind_of(op, lowering), lowering.constant_array(op.kernel)
    assert kind is not None
    assert weights is not None
    rows = Rows.of(op, kind)
    assert rows is not None
    buffer = lowering.placements.scratch(product(_copied(op, rows)) * byte_width(kind.element))
    _copy(op, rows, buffer, lowering)
    k, width = lowering.kernel("convolution"), width_of_results(op, tile, weights.shape[0])
    axes = range(2, rank(op.output.type))
    epilogue = RowEpilogue(k, op, (list(op.extras), list(op.access)), ResultShape((), (0, *axes), 1), lowering, width)
    left = WindowSource(k, _lines(op, rows, buffer), tile.rows, _window(op, rows), rows.kind.line)
    right = filters(k, _packed(weights, rows), rows.kind, lowering, (tile.columns, width))
    sizes = GroupSizes(pixels_of(op), weights.shape[0], (), _steps(weights, rows))
    GroupProduct(k, tile, sizes, rows.kind, (left, right), epilogue).build(op)


def _window(op: ConvolutionOp, rows: Rows) -> WindowShape:
    """The window without its width."""
    stride, dilation, pre, post = (list(one) for one in zip(*op.spatial(), strict=True))
    taps = [size for size in dims(op.kernel.type)[2:-1] if isinstance(size, int)]
    for values, last in ((stride, 1), (dilation, 1), (pre, 0), (post, 0)):
        values[-1] = last
    walk = (tuple(stride), tuple(dilation), tuple(pre), tuple(post))
    return WindowShape((*taps, 1), *walk, dims(op.output.type)[2:], rows.line)


def _copy(op: ConvolutionOp, rows: Rows, buffer: SSAValue, lowering: Lowering) -> None:
    """`parallel (image, rows.., pixel) { store the channels, or zeros in the padding }`."""
    k = lowering.kernel("rows")
    element, sizes = scalar_type(element_of(op.input.type)), dims(op.input.type)
    source, steps, target = k.buffer(op.input), k.strides(op.input), k.memory(buffer, element)
    copied, pre = _copied(op, rows), op.spatial()[-1][2]
    zero = k.constant(0, element)
    with k.parallel(copied[:-1]) as loops:
        image, *spatial, pixel = loops
        wanted = k.sub(pixel, pre)
        inside = k.compare("ult", wanted, k.size(sizes[-1]))

        def channel(number: int) -> SSAValue:
            if isinstance(sizes[1], int) and number >= sizes[1]:
                return zero
            at = [image, k.constant(number), *spatial, wanted]
            return k.guarded(inside, lambda: k.ready(k.value(LoadOp(source, at, steps))), zero)

        values = k.value(FragmentOp([channel(number) for number in range(rows.channels)]))
        index = k.constant(0)
        for loop, axis in zip(loops, range(len(loops)), strict=True):
            index = k.add(index, k.mul(loop, k.size(product(copied[axis + 1 :]))))
        k.insert(StoreFragmentOp(values, target, index, range(rows.channels), wide=True))
    k.finish(op)


def _packed(weights: Array, rows: Rows) -> Array:
    """`[output channel, lines of the rows of the window]`, each line filled up with zeros."""
    import numpy as np

    count, channels, *_, taps = weights.shape
    above = weights[0, 0, ..., 0].size
    packed = np.zeros((count, above, rows.line // rows.channels, rows.channels), weights.dtype)
    packed[:, :, :taps, :channels] = weights.reshape(count, channels, above, taps).transpose(0, 2, 3, 1)
    return packed.reshape(count, above * rows.line)
