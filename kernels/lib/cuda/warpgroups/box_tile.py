"""The configurations of a convolution on boxes of pixels: tile, warpgroups, boxes on their way; and their estimates."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.warpgroup import LINE, ROWS, WARPGROUP
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.tile import Tile

_NAME = re.compile(r"(\d+)x(\d+)n(\d+)g(\d)(t?)s(\d+)(?:e(\d))?")
_BARRIERS = 1024  # bytes
_SLOTS = 2  # of a warpgroup, for an operand that is copied ahead
_QUAD_BYTES = 64
_MAX_COLUMNS = {1: 256, 2: 128, 3: 128, 4: 64}  # by the warpgroups, as they share the registers
_MAX_BYTES = 64  # columns of results that are bytes: their biases and scales take registers too


@dataclass(frozen=True)
class OwnTile(GroupTile):
    """What one of several warpgroups multiplies at once that do not share stages."""

    @property
    def slots(self) -> int:
        """Each has its own."""
        return _SLOTS * self.ping_pong


@dataclass(frozen=True)
class BoxTile(Tile):
    """A block has all weights for `columns` results of a pixel in shared memory, and takes tile after tile of pixels.

    Each of its `groups` warpgroups has tiles of its own, whose `rows` are `height` x `width` pixels, and `stages`
    places for boxes.
    `extra` bytes of an operand that each result needs are copied ahead.

    With `ping_pong` they multiply one after the other, so that one writes results while another one multiplies.
    """

    height: int
    groups: int
    stages: int
    extra: int = 0
    ping_pong: bool = False

    @staticmethod
    def named(name: str) -> BoxTile | None:
        """The configuration that a text such as `8x8n64g4ts2` or `1x64n64g4s2e1` names."""
        match = _NAME.fullmatch(name)
        if match is None:
            return None
        height, width, columns, groups, stages, extra = (int(part or 0) for part in match.group(1, 2, 3, 4, 6, 7))
        return BoxTile(height * width, columns, height, groups, stages, extra, ping_pong=match[5] == "t")

    @property
    def width(self) -> int:
        """Pixels of a row of the tile."""
        return self.rows // self.height

    @property
    def name(self) -> str:
        ping_pong, extra = "t" * self.ping_pong, f"e{self.extra}" if self.extra else ""
        return f"{self.height}x{self.width}n{self.columns}g{self.groups}{ping_pong}s{self.stages}{extra}"

    @property
    def threads(self) -> int:
        """With a warp for each warpgroup that starts its copies."""
        return self.groups * (WARPGROUP + WARP)

    @property
    def own_tile(self) -> OwnTile:
        """What a warpgroup multiplies at once."""
        return OwnTile(ROWS, self.columns, self.stages, ping_pong=self.groups, extra=self.extra)


@dataclass(frozen=True)
class BoxWork:
    """A convolution with typical sizes. A tile has `slabs` of `lines` lines, `copied` ones, and `steps` for each.

    `ahead` bytes of an extra operand may be copied ahead.
    """

    tiles: int
    columns: int
    slabs: int
    steps: int
    copied: int
    lines: int
    line: int
    extras: int
    width: int
    operations: int
    ahead: int = 0
    device: GpuDevice = field(kw_only=True)

    def known_bytes(self, tile: BoxTile) -> int:
        """Of the weights of a block."""
        return self.slabs * self.steps * tile.columns * self.line

    def shared_bytes(self, tile: BoxTile) -> int:
        boxes = tile.groups * tile.stages * self.lines * self.line
        return self.known_bytes(tile) + boxes + tile.own_tile.slots_bytes + _BARRIERS

    def allows(self, tile: BoxTile) -> bool:
        """Whether a tile can do the work."""
        most = min(_MAX_COLUMNS.get(tile.groups, 0), _MAX_BYTES if self.width == 1 else _MAX_COLUMNS[1])
        whole = tile.columns % 32 == 0 and 32 <= tile.columns <= most
        lines = tile.extra == 0 or (tile.extra == self.ahead and tile.columns * tile.extra % _QUAD_BYTES == 0)
        return whole and lines and tile.stages >= 1 and self.shared_bytes(tile) <= self.device.shared_bytes

    def cycles(self, tile: BoxTile) -> float:
        """About how long it takes."""
        device = self.device.boxes
        across = -(-self.columns // tile.columns)
        each = -(-self.tiles // min(self.tiles, max(1, self.device.processors // across)))
        step = (
            max(ROWS * tile.columns / device.products, (ROWS + tile.columns) * LINE / device.read_bytes)
            * self.line
            / LINE
        )
        products = self.slabs * self.steps * step
        share = ROWS * tile.columns
        results = share / WARPGROUP * (device.result + device.operation * self.operations)
        overlap = device.no_overlap if tile.ping_pong else 1
        both = max(products, results) + overlap * min(products, results)
        alone = -(-each // tile.groups) * (products + device.alone * results)
        copies = each * self.slabs * self.copied * max(device.line, self.line / device.line_bytes)
        moved = self.tiles * across * (share * self.width * (1 + self.extras) + self.slabs * self.copied * self.line)
        busy = max(each * both, alone, copies, moved / device.moved_bytes, self._bytes_far / device.far_bytes)
        return device.start + self.known_bytes(tile) / device.known_bytes + busy

    @property
    def _bytes_far(self) -> float:
        """Of pixels and results, where no cache holds them."""
        pixels = self.tiles * ROWS * (self.columns * self.width * (1 + self.extras) + self.slabs * self.line)
        return pixels if pixels > self.device.boxes.cache_bytes else 0

    def microseconds(self, tile: BoxTile) -> float:
        """Microseconds with a tile."""
        return self.cycles(tile) / self.device.boxes.cycles_per_microsecond
