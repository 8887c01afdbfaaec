"""Tile shapes and split-K: how large tiles are, in how many parts a sum is split, and an estimate of the time."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from mlirt.dialects.gpu_device import GpuDevice, ShapeTimes
from mlirt.kernels.lib.tile import Tile

Kind: TypeAlias = Literal["float", "half", "byte"]

_PARTS = (1, 2, 3, 4, 6, 8, 12, 16)
_CLUSTERS = (2, 3, 4, 6, 8)
_MEETING = 700  # cycles of the two barriers of a cluster, and of reading what its other blocks have kept
_LATE_CLUSTERS = 4000  # cycles between those that a processor has one after the other, measured with 64x64c4
_BYTES = {"float": 4, "half": 2, "byte": 1}  # of an element
_MIN_STEPS = 2  # of one part of a split sum
TILE_PADDING = 16
"""Bytes after each row of a tile, so that rows start in different banks."""


@dataclass(frozen=True)
class WarpTile(Tile):
    """`rows` x `columns` results per block, `depth` products at a time; each sum is split in so many `parts`.

    The blocks of these are a cluster and add up each other's sums, or else a second launch does so.

    A warp computes a part of the tile, the warps of a block stand in `warp_rows` x `warp_columns`. `stages` tiles of
    the operands, whose elements are of a `kind`, are in shared memory at once; `resident` blocks fit on a processor.
    """

    depth: int
    warp_rows: int
    warp_columns: int
    resident: int
    kind: Kind
    stages: int = 3
    parts: int = 1
    is_cluster: bool = False
    piece: tuple[int, int] = (0, 0)
    """Rows and columns that a thread has where it multiplies for itself."""
    lines: int = 4
    """Lines of the depth that are multiplied between two rounds of a loop, there."""
    transposes: bool = False
    """Whether operands whose neighbours are along the depth are transposed on their way to shared memory, there."""
    is_split: bool = False
    """Whether the matrix units multiply single precision, as parts in bfloat16."""

    @property
    def lane_rows(self) -> int:
        """How many lanes of a warp have pieces below each other."""
        return self.rows // (self.warp_rows * self.piece[0])

    @property
    def lane_columns(self) -> int:
        """How many lanes of a warp have pieces beside each other."""
        return self.columns // (self.warp_columns * self.piece[1])

    @property
    def name(self) -> str:
        """Such as `128x128`, or `64x64p4` for four parts, `64x64c4` where these are a cluster; `128x128bf16x6`."""
        whole = f"{self.rows}x{self.columns}{'bf16x6' * self.is_split}"
        return whole if self.parts == 1 else f"{whole}{'c' if self.is_cluster else 'p'}{self.parts}"

    @property
    def bytes(self) -> int:
        """Of an element."""
        return _BYTES[self.kind]

    def times(self, device: GpuDevice) -> ShapeTimes:
        """How long its steps take on a device."""
        return device.tiles.shapes[self.entry]

    @property
    def entry(self) -> str:
        """Its times in a device file."""
        return f"{'split' if self.is_split else self.kind}_{self.rows}x{self.columns}"

    def rate(self, device: GpuDevice) -> float:
        """The products that a processor makes per cycle."""
        return {"float": device.tiles.floats, "half": device.tiles.halves, "byte": device.tiles.bytes}[self.kind]

    @property
    def threads(self) -> int:
        return 32 * self.warp_rows * self.warp_columns

    def shared_bytes(self, has_copies: bool = True) -> int:
        """Shared memory at most, however operands lie; without asynchronous copies there are two stages."""
        pad = TILE_PADDING // self.bytes
        lines = sum(max(self.depth * (own + pad), own * (self.depth + pad)) for own in (self.rows, self.columns))
        stages = self.stages if has_copies else 2
        return max(stages * lines * self.bytes, self.rows * (4 * self.columns + TILE_PADDING))


# Single precision, multiplied by each thread for itself.
MULTIPLY_ADD = (
    WarpTile(128, 128, 16, 4, 2, 2, "float", stages=4, piece=(8, 8), lines=16, transposes=True),
    WarpTile(64, 64, 32, 2, 2, 4, "float", piece=(8, 4), lines=16, transposes=True),
    WarpTile(32, 32, 32, 2, 1, 8, "float", piece=(4, 4), lines=8),
)
# Single precision, multiplied by the matrix units as parts in bfloat16; `piece` and `lines` are for sums that are not
# finite, which each thread adds up for itself.
_SPLIT = partial(WarpTile, kind="float", lines=4, transposes=True, is_split=True)
SPLIT = (
    _SPLIT(128, 128, 16, 2, 2, resident=2, stages=4, piece=(8, 16)),
    _SPLIT(64, 128, 16, 2, 2, resident=3, stages=4, piece=(4, 16)),
    _SPLIT(128, 64, 32, 2, 2, resident=3, piece=(8, 8)),
    _SPLIT(64, 64, 32, 2, 2, resident=4, piece=(4, 8)),
    _SPLIT(32, 128, 16, 1, 4, resident=4, stages=4, piece=(4, 8)),
)
SINGLE = (*MULTIPLY_ADD, *SPLIT)
# Half precision, multiplied by the matrix units.
MATRIX_UNIT = (
    WarpTile(128, 128, 32, 2, 4, resident=2, kind="half"),
    WarpTile(64, 64, 32, 2, 2, resident=4, kind="half"),
    WarpTile(32, 32, 32, 2, 2, resident=8, kind="half"),
)
# Bytes, multiplied by the matrix units: twice as many in as many bytes.
MATRIX_UNIT_BYTES = (
    WarpTile(128, 128, 64, 2, 4, resident=2, kind="byte"),
    WarpTile(64, 64, 64, 2, 2, resident=4, kind="byte"),
    WarpTile(32, 32, 64, 2, 2, resident=8, kind="byte"),
)


@dataclass(frozen=True)
class Work:
    """A batch of products: rows x columns results each, with `steps(shape)` tiles along the depth.

    `is_scattered`: the elements of the right operand are loaded one by one, from places that are far apart.
    """

    rows: int
    columns: int
    batch: int
    steps: Callable[[WarpTile], int]
    is_scattered: bool = False
    device: GpuDevice = field(kw_only=True)

    def microseconds(self, tile: WarpTile) -> float:
        """About how long it takes with a tile."""
        return self.cycles(tile) / self.device.tiles.cycles_per_microsecond

    def cycles(self, shape: WarpTile) -> float:
        """The same in cycles."""
        parts = shape.parts
        processors, device, times = self.device.processors, self.device.tiles, shape.times(self.device)
        blocks = shape.cover(self.rows, self.columns) * self.batch * parts
        steps = -(-self.steps(shape) // parts)
        is_apart = parts > 1 and not shape.is_cluster
        moved = 8 * parts * self.rows * self.columns * self.batch if is_apart else 0  # written and read
        if times.busy:
            full, rest = divmod(-(-blocks // processors), shape.resident)
            together = [shape.resident] * full + [rest] * (rest > 0)
            total = sum(steps * self._measured_step(shape, count) + times.start for count in together)
            total += (len(together) - 1) * _LATE_CLUSTERS if shape.is_cluster else 0
            return device.launch + total + moved / device.parts_per_cycle  # second launches are in what was fitted
        side_by_side = min(shape.resident, -(-blocks // processors))
        rounds = -(-blocks // (processors * side_by_side))
        finish = shape.rows * shape.columns * side_by_side * device.finished_result
        total = rounds * max(steps * self._step(shape, side_by_side) + times.start, finish)
        second = device.second_launch + moved / device.bytes_per_cycle if is_apart else 0
        return device.matrix_launch + total + (_MEETING if shape.is_cluster else second)

    def _measured_step(self, shape: WarpTile, side_by_side: int) -> float:
        """Cycles of a step of blocks that share a processor: they wait, work, and both where they do as much of it."""
        times = shape.times(self.device)
        mixed = (times.floor**3 + (times.busy * side_by_side) ** 3) ** (1 / 3)
        return max(mixed, self._loaded_one_by_one(shape, side_by_side))

    def _step(self, shape: WarpTile, side_by_side: int) -> float:
        products = shape.rows * shape.columns * shape.depth * side_by_side
        read = (shape.rows + shape.columns) * shape.depth * shape.bytes * side_by_side
        device = self.device
        shared = read * device.processors / device.tiles.bytes_per_cycle
        step = max(shape.times(device).floor, products / shape.rate(device), shared)
        return max(step, self._loaded_one_by_one(shape, side_by_side))

    def _loaded_one_by_one(self, shape: WarpTile, side_by_side: int) -> float:
        """Cycles for loads of a step that fetch single elements."""
        loaded = -(-shape.columns * shape.depth // shape.threads) * side_by_side
        return loaded * self.device.tiles.scattered_load if self.is_scattered else 0


def choices(
    shapes: Sequence[WarpTile], steps: Callable[[WarpTile], int], *, may_split: bool, has_clusters: bool = False
) -> list[WarpTile]:
    """All shapes with all numbers of parts of which none is empty and each has a few steps."""
    found: dict[WarpTile, None] = {}
    for shape in shapes:
        count = steps(shape)
        for parts in _PARTS if may_split else (1,):
            if parts == 1 or count >= _MIN_STEPS * parts:
                none_empty = -(-count // max(1, -(-count // parts)))
                found[replace(shape, parts=max(1, none_empty))] = None
                if has_clusters and none_empty in _CLUSTERS:
                    found[replace(shape, parts=none_empty, is_cluster=True)] = None
    return list(found)


def choice_named(shapes: Sequence[WarpTile], name: str) -> WarpTile | None:
    """The choice of a name, whether it is a sensible one or not."""
    match = re.fullmatch(r"(\d+x\d+(?:bf16x6)?)(?:([pc])([1-9]\d*))?", name)
    if match is None:
        return None
    parts, is_cluster = int(match[3] or 1), match[2] == "c"
    if is_cluster and parts not in _CLUSTERS:
        return None
    found = (replace(shape, parts=parts, is_cluster=is_cluster) for shape in shapes if shape.name == match[1])
    return next(found, None)
