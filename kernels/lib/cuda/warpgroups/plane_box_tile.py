"""The configurations of a convolution on boxes of pixels that threads fill from planes, and their estimates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.warpgroup import LINE, ROWS, WARPGROUP
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
_MIN_KEPT = 4  # a warpgroup gives one back when it has begun to read the next, and each has every other one
# Not fitted: cycles between a load and its use, and the part of the shorter one of bringing what is multiplied and
# multiplying that the other one does not hide.
_LATENCY, _NO_OVERLAP = 900, 0.25
_STORED = 50  # cycles of a store of a warp, whose threads write to eight channels: as five layers took on an H200


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

    def shared_bytes(self, lines: int, apart: int) -> int:
        """With boxes of so many lines."""
        return self.stages * lines * self.line + self.kept * self.kept_bytes * apart + _BARRIERS

    def is_whole(self, apart: int) -> bool:
        """Whether the warpgroups can share the work, and their registers hold the sums of so many results of a pixel of
        the tile.
        """
        whole = self.rows in (ROWS, CONSUMERS * ROWS) and self.height * self.across % CONSUMERS == 0
        whole = whole and self.columns % 32 == 0 and 0 < self.own_height * self.columns * apart <= _MAX_PIXELS
        whole = whole and ROWS * apart <= _MAX_LINES
        return whole and self.line in (LINE, LINE // 2) and self.stages >= 1 and self.kept >= _MIN_KEPT


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

    def microseconds(self, tile: PlaneBoxTile) -> float:
        """About how long it takes."""
        device = self.device.boxes
        each = -(-self.tiles * self.parts // self.device.processors)
        step = max(ROWS * tile.columns / device.products, (ROWS + tile.columns) * LINE / device.read_bytes) * (
            tile.line / LINE
        )
        products = self.taps * self.apart * CONSUMERS * tile.own_height * step
        loaded = FILLERS * LOADED * PIECE * self.together * 2  # bytes under way
        filled = self.copied * tile.line * _LATENCY / loaded
        copied = (
            self.taps * self.apart * tile.kept_bytes + self.copied * tile.line
        ) / self.device.warpgroups.read_bytes
        others = max(filled, copied)
        own = ROWS * tile.columns * tile.own_height * self.apart / WARPGROUP
        results = own * (device.result + device.operation * self.operations)
        results += own * WARPGROUP / WARP / self.written * _STORED
        busy = self.slabs * max(products, others)
        if self.slabs <= tile.stages:  # one multiplies while the other one writes
            busy = max(busy, self.slabs * products / CONSUMERS + results)
        else:
            busy += results
        busy += _NO_OVERLAP * self.slabs * min(products, others)
        computed = (device.start + each * busy) / device.cycles_per_microsecond
        moved = self.bytes / self.device.rows.read_bytes
        return max(computed, moved) + _NO_OVERLAP * min(computed, moved)


__all__ = ["CONSUMERS", "FILLERS", "LOADED", "PIECE", "PRODUCERS", "PlaneBoxTile", "PlaneBoxWork"]
