"""Convolutions and deconvolutions on Hopper GPUs from planes to planes of channels by warpgroups, in one launch.

Threads read planes and write lines of channels to shared memory, where the matrix unit finds the pixels of all
positions of a window (`warpgroups/plane_box_product.py`): no launch puts channels innermost before, and none makes
planes behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.matrix_unit import MmaKind
from mlirt.dialects.kernel.warpgroup import GROUP_LINES, LINE, ROWS
from mlirt.dialects.layout import arranged, vector_width
from mlirt.dialects.symbolic import ceil_div, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, rank, stored_bytes
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.group_convolution import is_depthwise, kind_of, pads_with_zeros
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.plane_box_product import PlaneBoxProduct, Planes
from mlirt.kernels.lib.cuda.warpgroups.plane_box_tile import MIN_KEPT, PlaneBoxTile, PlaneBoxWork
from mlirt.kernels.lib.cuda.warpgroups.plane_boxes import PlaneAxis, PlaneBox
from mlirt.kernels.lib.cuda.warpgroups.plane_results import PlaneResults, staged_bytes
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import (
    ResultShape,
    RowEpilogue,
    is_pointwise,
    large_extras,
    scalar_operations,
)
from mlirt.kernels.lib.cuda.warpgroups.sources import MappedMemory, MatrixSource
from mlirt.kernels.lib.epilogue import extra_operands
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import worth_measuring

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 18

_HALVES = frozenset({MmaKind.F16, MmaKind.BF16})
_MIN_CHANNELS, _MIN_RESULTS = 16, 8
_MIN_PIXELS = 32  # of a row: a tile has whole rows of so many
_WIDTHS, _HEIGHTS, _KEPT = (32, 64, 128, 256), range(8, 0, -1), (10, 8, 6, 4)
_APART = (1, 2, 4)  # results of a pixel in a row, of a deconvolution: what a thread writes is aligned then
_TOGETHER = 2  # neighbouring pixels of a channel that are read at once, where rows are aligned for it
_PIECE = 16  # bytes of the widest access
_MAX_COST_RATIO, _MAX_MEASURED = 1.6, 6  # from the cheapest, and tiles that are worth a measurement


@dataclass(frozen=True)
class PlaneConvolution:
    """A convolution of planes: how its windows walk along depth, height and width (images have a depth of one).

    `rows` are output channels. Of a deconvolution the windows are those of the remainders of the result's position.
    """

    op: ConvolutionOp
    kind: Kind
    axes: tuple[PlaneAxis, PlaneAxis, PlaneAxis]
    channels: int
    rows: int
    lowering: Lowering

    @property
    def together(self) -> int:
        """Neighbouring pixels that are read at once."""
        place, width = self.lowering.placements[self.op.input], byte_width(self.kind.element)
        steps = [step * width for step in place.strides[:-1]]
        return vector_width(_TOGETHER * width, place.offset, self.axes[-1].length * width, *steps) // width

    @property
    def written(self) -> int:
        """Neighbouring results of a row that are written at once."""
        output = self.op.output
        place, width = self.lowering.placements[output], byte_width(element_of(output.type))
        steps = [step * width for step in place.strides[:-1]]
        most = min(_PIECE, GROUP_LINES * width)
        return vector_width(most, place.offset, dims(output.type)[-1] * width, *steps) // width

    @property
    def staged(self) -> int:
        """Bytes of shared memory that results pass through."""
        op = self.op
        is_by_rows = all(one.steps[-1] == 0 for one in extra_operands(op, self.lowering.placements))
        width = byte_width(element_of(op.output.type) if is_by_rows else self.kind.accumulator_type)
        return staged_bytes(self.axes[-1].apart, width)

    def box(self, tile: PlaneBoxTile) -> PlaneBox:
        return PlaneBox(*self.axes[1:], tile.height, tile.columns, self.together)

    def fits(self, tile: PlaneBoxTile) -> bool:
        """Whether a tile can do it."""
        apart, gpu = self.axes[-1].apart, self.lowering.target.gpu
        if not tile.is_whole(apart) or tile.shared_bytes(self.box(tile).lines, apart, self.staged) > gpu.shared_bytes:
            return False
        return self.stays(tile) or tile.kept >= MIN_KEPT

    def stays(self, tile: PlaneBoxTile) -> bool:
        """Whether all weights that a block needs stay in shared memory: its tiles have the same output channels."""
        return tile.has_all(self.steps(tile)) and self.parts(tile) <= self.lowering.target.gpu.processors

    def parts(self, tile: PlaneBoxTile) -> int:
        """Tiles of the same pixels: for other output channels, and remainders of depth and height."""
        return self.axes[0].apart * self.axes[1].apart * -(-self.rows // tile.rows)

    def slabs(self, tile: PlaneBoxTile) -> int:
        """Boxes of a tile."""
        return -(-self.channels // (tile.line // byte_width(self.kind.element))) * self.axes[0].taps

    def steps(self, tile: PlaneBoxTile) -> int:
        """Products of a row of a tile."""
        return self.slabs(tile) * self.axes[1].taps * self.axes[2].taps

    def work(self, tile: PlaneBoxTile) -> PlaneBoxWork:
        """What there is to do with a tile."""
        op, box, known = self.op, self.box(tile), typical_values(self.lowering.block)
        deep, down, across = self.axes
        pixels = (ceil_div(down.places, tile.height), ceil_div(across.places, tile.columns))
        return PlaneBoxWork(
            typical(product([dims(op.output.type)[0], deep.places, *pixels]), known),
            self.parts(tile),
            self.slabs(tile),
            box.taps,
            across.apart,
            box.rows * box.runs * box.together,
            box.together,
            self.written,
            scalar_operations(op),
            typical(stored_bytes(op.input.type) + (1 + large_extras(op)) * stored_bytes(op.output.type), known),
            device=self.lowering.target.gpu,
        )

    def microseconds(self, tile: PlaneBoxTile) -> float:
        """About how long it takes with a tile."""
        return self.work(tile).microseconds(tile, stays=self.stays(tile))

    def tiles(self) -> Iterator[PlaneBoxTile]:
        """Those that fit, with as many places as fit for boxes, then for weights; also such that all weights stay."""
        for rows in (ROWS, 2 * ROWS):
            for width in self._widths():
                for height in _HEIGHTS:
                    for line in (LINE, LINE // 2):
                        plain = PlaneBoxTile(rows, width, height, line, 1, 1)
                        slabs, every = self.slabs(plain), plain.across * self.steps(plain)
                        stages = sorted({2 * slabs, slabs + 1, slabs, 2, 1}, reverse=True)
                        for places in ([every], _KEPT):
                            all_ = (replace(plain, stages=one, kept=kept) for one in stages for kept in places)
                            yield from islice(filter(self.fits, all_), 1)

    def _widths(self) -> list[int]:
        """Pixels of a tile: whole parts of a row, if its length is known."""
        places = self.axes[-1].places
        if not isinstance(places, int):
            return list(_WIDTHS)
        parts = range(-(-places // _WIDTHS[-1]), -(-places // _WIDTHS[0]) + 1)
        each = (-(-places // (count * GROUP_LINES)) * GROUP_LINES for count in parts)
        return sorted({width for width in each if width >= _WIDTHS[0]})


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a convolution takes, about, with each tile."""
    found = _problem(op, lowering)
    if found is None:
        return {}
    costs = ((found.microseconds(tile), tile.name) for tile in found.tiles())
    return worth_measuring(costs, _MAX_COST_RATIO, _MAX_MEASURED)


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    found, tile = _problem(op, lowering), PlaneBoxTile.named(lowering.choice(op))
    if found is None:
        return False
    if tile is None:
        tile = min(found.tiles(), key=found.microseconds, default=None)
    if tile is None or not found.fits(tile):
        return False
    _build(found, tile)
    return True


def _problem(op: ConvolutionOp, lowering: Lowering) -> PlaneConvolution | None:
    """What there is to do; None where the tactic does not apply."""
    kind, weights = kind_of(op, lowering), lowering.known(op.kernel)
    if kind is None or kind.mma not in _HALVES or weights is None or element_of(op.input.type) != kind.element:
        return None
    if accumulator_type(op.epilogue) != kind.accumulator_type or not is_pointwise(op) or not pads_with_zeros(op):
        return None
    if op.groups.value.data != 1 or is_depthwise(op) or rank(op.input.type) not in (4, 5):
        return None
    steps = [lowering.placements[value].strides for value in (op.input, op.output)]
    axes = _axes(op, weights.shape[2:])
    if any(one[-1] != 1 for one in steps) or axes is None:
        return None
    flips = op.transposed.value.data
    rows, channels = weights.shape[:2][:: -1 if flips else 1]
    width = typical(axes[-1].places, typical_values(lowering.block))
    if channels < _MIN_CHANNELS or rows < _MIN_RESULTS or width < _MIN_PIXELS:
        return None
    return PlaneConvolution(op, kind, axes, channels, rows, lowering)


def _axes(op: ConvolutionOp, window: Sequence[int]) -> tuple[PlaneAxis, PlaneAxis, PlaneAxis] | None:
    """How windows walk along depth, height and width; None for deconvolutions that no windows are known of."""
    axes, flips = list[PlaneAxis](), op.transposed.value.data
    sizes = zip(dims(op.input.type)[2:], dims(op.output.type)[2:], window, op.spatial(), strict=True)
    for length, result, taps, (stride, dilation, pre, _) in sizes:
        if flips and dilation != 1:
            return None
        if flips:
            axes.append(PlaneAxis.of_deconvolution(length, result, taps, stride, pre))
        else:
            axes.append(PlaneAxis(length, result, taps, stride, dilation, pre))
    deep, down, across = [*[PlaneAxis(1, 1, 1)] * (3 - len(axes)), *axes]
    return (deep, down, across) if across.apart in _APART else None


def _build(found: PlaneConvolution, tile: PlaneBoxTile) -> None:
    op, lowering, kind = found.op, found.lowering, replace(found.kind, line=tile.line)
    k, last = lowering.kernel("convolution"), rank(op.output.type) - 1
    apart = (found.axes[0].apart, found.axes[1].apart, found.axes[2].apart)
    shape = ResultShape((0, *range(2, last)), (1,), (last,))
    epilogue = RowEpilogue(k, op, shape, lowering, found.written)
    place, (images, _, *spatial) = lowering.placements[op.input], dims(op.output.type)
    deep, height = [*[1] * (3 - len(spatial)), *spatial][:2]
    own, sizes = (tile.rows, tile.height, tile.columns), (found.rows, spatial[-1])
    results = PlaneResults(k, epilogue, own, (images, deep, height), sizes, apart)
    image, channel, *others = place.strides[:-1]
    steps = (image, channel, *[0] * (2 - len(others)), *others)
    planes = Planes(k.buffer(op.input), steps, images, found.channels, found.axes[0])
    flips = bool(op.transposed.value.data)
    packed = lowering.packed(op.kernel, partial(_packed, found.axes, tile.rows, kind.depth, flips))
    buffer, shape = lowering.placements.new_weight(packed, "packed"), packed.array.shape
    memory = MappedMemory(buffer, kind.element, 0, shape, (shape[1], 1))
    weights = MatrixSource(k, memory, ROWS * apart[-1], (), by_depth=False, known=True, line=tile.line)
    product = PlaneBoxProduct(k, tile, found.box(tile), planes, found.rows, kind, weights, results)
    product.build(op, stays=found.stays(tile))


def _packed(axes: Sequence[PlaneAxis], rows: int, depth: int, flips: bool, weights: Array) -> Array:
    """`[remainder of depth, of height, part of the output channels, remainder of width, output channel of the part,
    slabs of channels x taps along the depth x other taps x channels]`, of which all but the last are one dimension.

    The output channels are filled up with zeros to whole tiles of `rows`.
    """
    import numpy as np

    taps = weights if weights.ndim == 5 else weights[:, :, None]
    every = [_of_remainder(axes, at, taps) if flips else taps for at in np.ndindex(*(axis.apart for axis in axes))]
    padding = [(0, -every[0].shape[0] % rows), *[(0, 0)] * 4]
    whole = np.concatenate([np.pad(one, padding) for one in every])
    lines = "(rz ry rx p n) (b d) z y x", "(rz ry p rx n) (b z y x d)"
    z, y, x = (axis.apart for axis in axes)
    return arranged(whole, *lines, rz=z, ry=y, rx=x, n=ROWS, d=depth)


def _of_remainder(axes: Sequence[PlaneAxis], remainders: Sequence[int], kernel: Array) -> Array:
    """`[output channel, channel, taps..]` of results with a remainder of each axis, from a deconvolution's kernel."""
    import numpy as np

    found = np.zeros((*kernel.shape[1::-1], *(axis.taps for axis in axes)), kernel.dtype)
    for tap in np.ndindex(*found.shape[2:]):
        source = [axis.source(*each) for axis, *each in zip(axes, remainders, tap, strict=True)]
        if all(one < size for one, size in zip(source, kernel.shape[2:], strict=True)):
            found[(..., *tap)] = kernel[(..., *source)].T
    return found


__all__ = ["estimates", "lower"]
