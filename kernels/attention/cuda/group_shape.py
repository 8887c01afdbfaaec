"""How much of attention a block of warpgroups does: its queries, how many keys at a time, and about how long. No IR."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.gpu_device import GpuDevice
from mlirt.kernels.attention.cuda.flash_shape import FlashWork, QueryTile

_CAUSAL = 0.6  # of the tiles, as blocks do not get equally many
_LINE = 64  # elements of a line of a tile
_FIXED = 0.6  # the part of a tile's time that does not grow with the lines of a head
_SHARED_REGISTERS, _OTHER_REGISTERS = 1 << 16, 28  # of a processor; of a thread, beside scores, results and operands
_EARLY = 1.0  # microseconds of a launch that are over when its blocks begin, as they start early
_PER_EXTRA = 0.6  # of a tile's time, for each element of extra operands that a score needs
_PER_REGISTER = 1 / 64  # of a tile's time, for each register of a thread that is missing
_OTHER_BYTES = 7 * 1024  # of shared memory, beside the tiles
_MAX_HEAD_SIZE = 128  # elements of a head


@dataclass(frozen=True)
class GroupShape(QueryTile):
    """Warpgroups with 64 queries each share tiles of keys, of which `stages` are on their way.

    With `overlaps` a warpgroup starts the next product of queries and keys before it is done with the values of a tile,
    so that it computes exponentials while its matrix unit works.
    """

    stages: int
    overlaps: bool = False

    @staticmethod
    def of(groups: int, keys: int, stages: int, *, overlaps: bool = False) -> GroupShape:
        """So many warpgroups and keys."""
        return GroupShape(64 * groups, keys, 4 * groups, stages, overlaps)

    @property
    def groups(self) -> int:
        """Warpgroups that multiply."""
        return self.warps // 4

    @property
    def threads(self) -> int:
        """With those of the warpgroup that starts the copies."""
        return 128 * (self.groups + 1)

    @property
    def name(self) -> str:
        return f"{self.queries}x{self.keys}s{self.stages}{'o' * self.overlaps}"

    def shared_bytes(self, depth: int, columns: int) -> int:
        return 2 * (self.queries * lines(depth) + self.stages * self.keys * (lines(depth) + lines(columns)))

    def microseconds(self, work: FlashWork) -> float:
        """About how long it takes."""
        blocks = work.heads * -(-work.queries // self.queries)
        tiles = -(-work.keys // self.keys) * (_CAUSAL if work.causal else 1)
        slower = _FIXED + (1 - _FIXED) * (lines(work.depth) + lines(work.columns)) / (2 * _LINE)
        rounds, device = -(-blocks // work.device.processors), work.device.attention
        times = device.shapes[self.name]
        slower *= (1 + _PER_EXTRA * work.extra) * (1 + _PER_REGISTER * self._missing_registers(work))
        return device.launch - _EARLY + device.slower * (rounds * (times.block + tiles * times.tile * slower))

    def _missing_registers(self, work: FlashWork) -> float:
        """Those that a thread would need beside the ones it has: what is there no room for goes through memory."""
        scores, results = self.keys / 2, lines(work.columns) / 2
        weights = scores / 2 if self.overlaps else 0
        needed = scores + results + weights + work.extra * scores / 2 + _OTHER_REGISTERS
        return max(0.0, needed - min(255, _SHARED_REGISTERS / self.threads // 8 * 8))


def lines(width: int) -> int:
    """The elements of as many lines as a head takes."""
    return -(-width // _LINE) * _LINE


_SHAPES = (
    GroupShape.of(1, 128, 2),
    GroupShape.of(2, 128, 2),
    GroupShape.of(3, 128, 2),
    GroupShape.of(3, 64, 3),
    GroupShape.of(2, 64, 3),
    GroupShape.of(2, 128, 3, overlaps=True),
    GroupShape.of(2, 64, 4, overlaps=True),
)


def group_shapes(depth: int, columns: int, device: GpuDevice) -> tuple[GroupShape, ...]:
    """The shapes for heads of a depth and a number of columns: what registers and shared memory hold."""
    most = device.shared_bytes - _OTHER_BYTES
    if max(depth, columns) > _MAX_HEAD_SIZE or depth % 8 or columns % 8:
        return ()
    return tuple(
        shape
        for shape in _SHAPES
        if shape.shared_bytes(depth, columns) <= most and (shape.groups < 3 or lines(columns) <= _LINE)
    )
