"""The configurations of a convolution on boxes of pixels that threads fill from planes, and their estimates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.warpgroup import GROUP_LINES, LINE, ROWS, WARPGROUP
from mlirt.kernels.lib.tile import Tile

_NAME = re.compile(r"(\d+)x(\d+)x(\d+)l(\d+)s(\d+)k(\d+)")
CONSUMERS, PRODUCERS = 2, 1
"""Warpgroups of a block that multiply, and that fill boxes but for a warp that has weights copied."""
FILLERS = PRODUCERS * WARPGROUP - WARP
"""Threads that fill boxes."""
LOADED = 6
"""Places of a box that a thread reads before it writes the first."""
PIECE = 8
"""Channels of a pixel that a thread writes at once."""
_MAX_PIXELS, _MAX_LINES = 256, 256  # sums of a channel in a warpgroup, of which a thread has half; lines of a copy
_BARRIERS = 1024  # bytes
MIN_KEPT = 4  # a warpgroup gives one back when it has begun to read the next, and each has every other one
# Fitted to 30 measured times of eight convolutions and deconvolutions on an H200, in cycles and bytes per cycle; the
# error is 9 % in the mean of squares. Of shared memory that matrix units read, and that threads
# fill for each neighbouring pixel that they read at once (two in all that was measured):
_READ_BYTES, _FILLED_BYTES = 80, 4.45
# Of a warpgroup for an operation of the epilogue on a result of each thread, and for a store of a warp; the part of the
# shorter one of products and results that shows where warpgroups take turns; of a tile, and of a box.
_OPERATION, _STORED, _NO_OVERLAP, _TILE, _SLAB = 0.92, 2.2, 0.57, 2000, 200


@dataclass(frozen=True)
class PlaneBoxTile(Tile):
    """`rows` output channels of `height` rows of `columns` pixels; lines of `line` bytes are multiplied at a time.

    There are places for `stages` boxes, and for the weights of `kept` positions of a window.
    """

    height: int
    line: int
    stages: int
    kept: int

    @staticmethod
    def named(name: str) -> PlaneBoxTile | None:
        """The configuration that a text such as `128x2x64l128s2k4` names."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        rows, height, columns, line, stages, kept = map(int, match.groups())
        return PlaneBoxTile(rows, columns, height, line, stages, kept)

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.height}x{self.columns}l{self.line}s{self.stages}k{self.kept}"

    @property
    def across(self) -> int:
        """Warpgroups that have other output channels; the others have other rows of pixels."""
        return self.rows // ROWS

    @property
    def own_height(self) -> int:
        """Rows of pixels of a warpgroup."""
        return self.height * self.across // CONSUMERS

    @property
    def kept_bytes(self) -> int:
        """Of the weights of a position that a warpgroup multiplies, for one of the results of a pixel in a row."""
        return ROWS * self.line

    def shared_bytes(self, lines: int, apart: int, staged: int) -> int:
        """With boxes of so many lines, and so many bytes of results."""
        return self.stages * lines * self.line + self.kept * self.kept_bytes * apart + staged + _BARRIERS

    def is_whole(self, apart: int) -> bool:
        """Whether the warpgroups can share the work, and their registers hold the sums of so many results of a pixel of
        the tile.
        """
        whole = self.rows in (ROWS, CONSUMERS * ROWS) and self.height * self.across % CONSUMERS == 0
        whole = whole and self.columns % GROUP_LINES == 0 and 0 < self.own_height * self.columns * apart <= _MAX_PIXELS
        whole = whole and ROWS * apart <= _MAX_LINES
        return whole and self.line in (LINE, LINE // 2) and self.stages >= 1

    def has_all(self, steps: int) -> bool:
        """Whether there are places for all weights of so many steps."""
        return self.kept == self.across * steps


@dataclass(frozen=True)
class PlaneBoxWork:
    """A convolution with typical sizes: `tiles` of pixels by `parts` of channels, each with `slabs` boxes.

    A box has `copied` places, `together` pixels are read at once, and its lines are multiplied `taps` times for each of
    the `apart` results of a pixel in a row.
    """

    tiles: int
    parts: int
    slabs: int
    taps: int
    apart: int
    copied: int
    together: int
    written: int
    """Results that a thread writes at once."""
    operations: int
    bytes: int
    """That have to be moved."""
    device: GpuDevice = field(kw_only=True)

    def microseconds(self, tile: PlaneBoxTile, *, stays: bool) -> float:
        """About how long it takes; with `stays` a block has all its weights in shared memory."""
        device, processors = self.device.boxes, self.device.processors
        if stays:
            processors -= processors % self.parts
        each = -(-self.tiles * self.parts // processors)
        count = self.slabs * self.taps * self.apart * CONSUMERS * tile.own_height
        products = count * (ROWS + tile.columns) * tile.line / _READ_BYTES
        filled = self.slabs * self.copied * tile.line / (_FILLED_BYTES * self.together)
        own = ROWS * tile.columns * tile.own_height * self.apart / WARPGROUP
        results = own * (self.operations * _OPERATION + WARPGROUP / WARP / self.written * _STORED)
        if self.slabs <= tile.stages:  # one multiplies while the other one writes
            turn = products / CONSUMERS
            busy = max(products, turn + results) + _NO_OVERLAP * min(turn, results)
        else:
            busy = products + results
        # The first place of a box is empty when the last warpgroup has multiplied it.
        alone = 1 / self.slabs if tile.stages == self.slabs else 1.0 if tile.stages == 1 else 0.0
        busy = max(busy, filled) + alone * min(busy, filled) + _TILE + self.slabs * _SLAB
        computed = (device.start + each * busy) / device.cycles_per_microsecond
        return max(computed, self.bytes / self.device.rows.read_bytes)


__all__ = ["CONSUMERS", "FILLERS", "LOADED", "MIN_KEPT", "PIECE", "PRODUCERS", "PlaneBoxTile", "PlaneBoxWork"]
