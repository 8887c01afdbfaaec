"""How much of attention a block does: its warps, their rows of queries, and how many keys at a time. No IR."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlirt.dialects.gpu_device import GpuDevice
from mlirt.kernels.lib.tile import Tile

_CAUSAL = 0.6  # of the tiles, as blocks do not get equally many
# The part of a tile's time that does not grow with the width of the heads, and the width for which times were measured.
_FIXED, _WIDTH = 0.2, 64
_PER_EXTRA = 0.24  # of a tile's time, for each element of extra operands that a score needs


@dataclass(frozen=True)
class QueryTile(Tile):
    """`rows` queries of a block by `columns` keys, which are in shared memory at a time."""

    warps: int
    """Warps that multiply; each has rows of 16 queries."""

    @property
    def queries(self) -> int:
        return self.rows

    @property
    def keys(self) -> int:
        return self.columns

    @property
    def warp_rows(self) -> int:
        """Rows of 16 queries of a warp."""
        return self.rows // (16 * self.warps)


@dataclass(frozen=True)
class FlashShape(QueryTile):
    """The warps copy what they multiply."""

    @property
    def threads(self) -> int:
        return 32 * self.warps

    @property
    def name(self) -> str:
        return f"{self.rows}x{self.columns}w{self.warps}"


_SHAPES = (FlashShape(128, 64, 4), FlashShape(64, 64, 4), FlashShape(32, 64, 2), FlashShape(16, 64, 1))
_MAX_ACCUMULATORS = 64  # of one thread, for a row of results
_MAX_HEAD_SIZE = 128  # elements of a head


def padded(width: int) -> int:
    """The width of a tile in memory for heads of a width: a power of two, at least 16."""
    size = 16
    while size < width:
        size *= 2
    return size


def shapes_for(depth: int, columns: int) -> tuple[FlashShape, ...]:
    """The shapes that leave enough registers for heads of a depth and a number of columns."""
    if max(depth, columns) > _MAX_HEAD_SIZE or min(depth, columns) < 1:
        return ()
    wide = padded(max(depth, columns))
    return tuple(shape for shape in _SHAPES if shape.warp_rows * wide <= 2 * _MAX_ACCUMULATORS)


@dataclass(frozen=True)
class FlashWork:
    """Attention of `heads` heads (of all batch entries); with `causal` about half of the keys count."""

    heads: int
    queries: int
    keys: int
    depth: int
    columns: int
    causal: bool
    extra: float = 0.0
    """Elements of extra operands that a thread reads ahead for each of its scores, which has two rows of them."""
    fixed_registers: bool = False
    """Whether warpgroups cannot give registers to others."""
    device: GpuDevice = field(kw_only=True)

    def microseconds(self, shape: FlashShape) -> float:
        """About how long it takes."""
        blocks = self.heads * -(-self.queries // shape.queries)
        tiles = -(-self.keys // shape.keys)
        slower = _FIXED + (1 - _FIXED) * (self.depth + self.columns) / (2 * _WIDTH)
        slower *= 1 + _PER_EXTRA * self.extra
        rounds, device = -(-blocks // self.device.processors), self.device.attention
        times = device.shapes[shape.name]
        each = times.block + tiles * times.tile * slower * (_CAUSAL if self.causal else 1)
        return device.launch + device.slower * max(times.block + tiles * times.alone * slower, rounds * each)
