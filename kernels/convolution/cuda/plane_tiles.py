"""Convolutions of halves from planes to planes of channels, by the matrix units of warps.

Threads bring pixels to shared memory with eight channels side by side (`tiles/plane_lines.py`): no launch puts channels
innermost or lays out the rows of windows before, and none makes planes behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import prod

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.symbolic import product
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import byte_width, dims, element_of, rank, stored_bytes
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.convolution.cuda.group_convolution import pads_with_zeros
from mlirt.kernels.lib.cuda.tiles.interleaved_lines import InterleavedAxis, InterleavedLines
from mlirt.kernels.lib.cuda.tiles.plane_lines import COLUMNS, LINE, ROWS, WARP_COLUMNS, WARPS, PlaneLines
from mlirt.kernels.lib.cuda.tiles.plane_product import CHANNEL, RESIDENT, SPATIAL, PlaneProduct
from mlirt.kernels.lib.cuda.tiles.plane_windows import TileWindows
from mlirt.kernels.lib.cuda.tiles.problem import multiplies_halves
from mlirt.kernels.lib.cuda.warpgroups.planes import runs_cost
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import is_pointwise, large_extras, scalar_operations
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.lib.tile import Tile

OPS = (ConvolutionOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 16
POOLS = ADDS_UP = True

_WIDE, _NARROW = WARP_COLUMNS * COLUMNS, WARP_COLUMNS * COLUMNS // 2
_MAX_TILES = 4  # of output channels, whose accumulators a thread has
_MIN_PIXELS, _MIN_CHANNELS = 64, 8
_MAX_STEPS = 64  # of the code, which has no loop over them
# Estimates, not fitted: the part of the rate of the matrix units that tiles reach whose lines come from shared memory,
# cycles of a processor for a line that is filled and for 128 results that go by way of shared memory, the part of the
# shorter one of moving and computing that the blocks of a processor do not hide, and cycles before the first product.
_REACHED, _LINE, _KEPT, _NO_OVERLAP, _START = 0.6, 0.6, 2.0, 0.25, 2000
_REACHED_INTERLEAVED = 0.36  # of a deconvolution: 2.33 ms were measured for 64 channels of 32 x 256 x 256 pixels
_ACCESS = 128  # bytes of shared memory or of the first-level cache in a cycle


@dataclass(frozen=True)
class PlaneTile(Tile):
    """`rows` pixels, in `extents[0]` x `extents[1]` lines, by `columns` output channels: what a block computes.

    Of a deconvolution these are pixels of the input, each with results for all remainders of its strides.
    """

    extents: tuple[int, int]

    @property
    def width(self) -> int:
        """Pixels of a line."""
        return self.rows // prod(self.extents)

    @property
    def name(self) -> str:
        return f"{self.width}x{self.columns}"

    def lines(self, op: ConvolutionOp) -> PlaneLines:
        """The lines of a convolution's input that a tile needs."""
        missing, channels = 3 - len(op.spatial()), dims(op.input.type)[CHANNEL]
        taps, (strides, dilations, padding, _) = dims(op.kernel.type)[SPATIAL:], zip(*op.spatial(), strict=True)
        assert isinstance(channels, int)
        if op.transposed.value.data:
            axes = [InterleavedAxis(*each) for each in zip(strides, dilations, taps, padding, strict=True)]  # pyright: ignore[reportArgumentType]
            return InterleavedLines.of(axes, channels, self.width, self.extents, _MAX_STEPS)
        one, none = (1,) * missing, (0,) * missing
        window = (*one, *taps), (*one, *strides), (*one, *dilations), (*none, *padding)
        return PlaneLines(channels, *window, self.width, self.extents)  # pyright: ignore[reportArgumentType]


def estimates(op: ConvolutionOp, lowering: Lowering) -> Mapping[str, float]:
    """Microseconds that a convolution takes, about, with each tile."""
    return {tile.name: _microseconds(op, tile, lowering) for tile in _tiles(op, lowering)}


def lower(op: ConvolutionOp, lowering: Lowering) -> bool:
    found = [tile for tile in _tiles(op, lowering) if tile.name == lowering.choice(op)]
    if not found:
        return False
    PlaneProduct(op, found[0].lines(op), found[0].columns // ROWS, lowering).write()
    return True


def _tiles(op: ConvolutionOp, lowering: Lowering) -> Iterator[PlaneTile]:
    """Those that fit; none where the tactic does not apply."""
    if _applies(op, lowering):
        yield from fitting_tiles(op, lowering.target)


def fitting_tiles(op: ConvolutionOp, target: Target) -> Iterator[PlaneTile]:
    """Those that a device can do where all lies in planes; none of an op that the tactic is not for."""
    if not _has_planes(op, target):
        return
    is_volume, count = len(op.spatial()) == 3, dims(op.output.type)[CHANNEL]
    assert isinstance(count, int)
    side = _side(op)
    tiles = min(_MAX_TILES // side, -(-count // ROWS))
    for width in (_WIDE, _NARROW):
        rows = WARPS * _WIDE // width
        tile = PlaneTile(rows * width, tiles * ROWS, (2, rows // 2) if is_volume else (1, rows))
        lines = tile.lines(op)
        shared = (lines.lines + lines.zero_lines) * LINE * 2 + ROWS * (tile.rows + COLUMNS) * side * 4
        fits = shared <= target.gpu.shared_bytes_of(RESIDENT) and lines.zero_lines <= WARPS * WARP
        windows = TileWindows.of(op, lines)
        if fits and lines.steps <= _MAX_STEPS and (windows is None or (windows.are_whole and windows.are_added(op))):
            yield tile


def _side(op: ConvolutionOp) -> int:
    """How many results of a row a pixel of the tile has."""
    return op.spatial()[-1][0] if op.transposed.value.data else 1


def _applies(op: ConvolutionOp, lowering: Lowering) -> bool:
    last = rank(op.output.type) - 1
    if lowering.known(op.kernel) is None or not _has_planes(op, lowering.target):
        return False
    steps = [lowering.placements[value].strides[last] for value in (op.input, op.output)]
    pixels = dims(op.output.type)[0] * product(op.epilogue_dims()[SPATIAL:])
    return steps == [1, 1] and typical(pixels, typical_values(lowering.block)) >= _MIN_PIXELS


def _has_planes(op: ConvolutionOp, target: Target) -> bool:
    """Whether an op is one for the tactic, where its weights are known and all lies in planes."""
    element = element_of(op.kernel.type)
    if not multiplies_halves(element, target) or element_of(op.input.type) not in (element, f32):
        return False
    plain = op.groups.value.data == 1 and rank(op.output.type) in (4, 5) and pads_with_zeros(op)
    if not plain or accumulator_type(op.epilogue) != f32 or not is_pointwise(op):
        return False
    count = dims(op.output.type)[CHANNEL]
    if not isinstance(count, int) or count < _MIN_CHANNELS or _side(op) > _MAX_TILES:
        return False
    spatial = [*dims(op.input.type)[SPATIAL:], *dims(op.output.type)[SPATIAL:], *dims(op.kernel.type)]
    return all(isinstance(size, int) and size > 0 for size in [*spatial, dims(op.input.type)[CHANNEL]])


def _microseconds(op: ConvolutionOp, tile: PlaneTile, lowering: Lowering) -> float:
    known, device, lines = typical_values(lowering.block), lowering.target.gpu, tile.lines(op)
    batch, count, *spatial = (typical(size, known) for size in op.epilogue_dims())
    own = [*tile.extents, tile.width][3 - len(spatial) :]
    spatial = [-(-size // each) for size, each in zip(spatial, lines.interleave[3 - len(spatial) :], strict=True)]
    pixels = batch * prod(-(-size // one) for size, one in zip(spatial, own, strict=True))
    blocks = pixels * -(-count // tile.columns)
    each = max(1.0, blocks / device.processors)
    steps = lines.slabs * lines.steps
    reached = device.tiles.halves * (_REACHED_INTERLEAVED if op.transposed.value.data else _REACHED)
    products = steps * tile.columns * WARPS * _WIDE * 2 * LINE / reached
    reads = steps * WARPS * (2 * _WIDE * LINE * 2 + tile.columns * 2 * LINE * 2) / _ACCESS
    each_result = _KEPT + device.boxes.operation * scalar_operations(op)
    results = prod(lines.interleave) * tile.columns * WARPS * _WIDE / 128 * each_result
    filled = lines.fills * lines.lines * _LINE
    multiplied, others = max(products, reads), filled + results
    both = max(multiplied, others) + device.boxes.no_overlap * min(multiplied, others)
    busy = each * both + _START
    computed = busy / device.tiles.cycles_per_microsecond
    width = byte_width(element_of(op.input.type))
    passed = blocks * lines.fills * lines.lines * lines.fold * min(lines.part, lines.channels) * width
    far = typical(stored_bytes(op.input.type) + (1 + large_extras(op)) * stored_bytes(op.output.type), known)
    moved = max(
        far / device.rows.read_bytes,
        passed / (device.tiles.bytes_per_cycle * device.tiles.cycles_per_microsecond),
    ) + runs_cost(op, lowering)
    return device.moves.launch + max(computed, moved) + _NO_OVERLAP * min(computed, moved)


__all__ = ["estimates", "fitting_tiles", "lower"]
