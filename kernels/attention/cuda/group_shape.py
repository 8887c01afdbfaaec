"""How much of attention a block of warpgroups does: its queries, how many keys at a time, and about how long. No IR."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.gpu_device import GpuDevice
from mlirt.kernels.attention.cuda.flash_shape import FlashWork, QueryTile
from mlirt.kernels.attention.cuda.register_shares import most_registers

# Of the tiles, as blocks do not get equally many; persistent ones cannot take over what others have left.
_CAUSAL, _CAUSAL_STAYING = 0.6, 0.65
_LINE = 64  # elements of a line of a tile
_FIXED = 0.6  # the part of a tile's time that does not grow with the lines of a head
_OTHER_REGISTERS = 28  # of a thread, beside scores, results and operands
_EARLY = 1.0  # microseconds of a launch that are over when its blocks begin, as they start early
_PER_EXTRA = 0.6  # of a tile's time, for each element of extra operands that a score needs
_PER_REGISTER = 1 / 64  # of a tile's time, for each register of a thread that is missing
_STAYING = 0.4  # of what a block takes besides, for each tile of queries of a persistent one
_LETTERS = "otp"
_MIN_STAGES = 2
_OTHER_BYTES = 7 * 1024  # of shared memory, beside the tiles
_MAX_HEAD_SIZE = 128  # elements of a head


@dataclass(frozen=True)
class GroupShape(QueryTile):
    """Warpgroups with 64 queries each share tiles of keys, of which `stages` are on their way.

    With `overlaps` a warpgroup starts the next product of queries and keys before it is done with the values of a tile,
    so that it computes exponentials while its matrix unit works. Where it also `takes_turns`, it starts its products
    when the warpgroup before it has started its own, so that the exponentials of one meet the products of others. A
    block that `stays` has some tiles of queries: copies for the next one begin before the results of one are written.
    """

    stages: int
    overlaps: bool = False
    takes_turns: bool = False
    stays: bool = False

    @staticmethod
    def of(groups: int, keys: int, stages: int, how: str = "") -> GroupShape:
        """So many warpgroups and keys; `how` has a letter each for overlapping, taking turns and persistent blocks."""
        return GroupShape(64 * groups, keys, 4 * groups, stages, *(letter in how for letter in _LETTERS))

    @property
    def groups(self) -> int:
        """Warpgroups that multiply."""
        return self.warps // 4

    @property
    def threads(self) -> int:
        """With those of the warpgroup that starts the copies."""
        return 128 * (self.groups + 1)

    @property
    def frees_keys(self) -> bool:
        """Whether keys make room for those to come before the values of their tile do.

        A warpgroup that overlaps is a tile further on with keys than with values, for which two stages are too few.
        """
        return self.overlaps and self.stages == _MIN_STAGES

    @property
    def name(self) -> str:
        marks = zip(_LETTERS, (self.overlaps, self.takes_turns, self.stays), strict=True)
        return f"{self.queries}x{self.keys}s{self.stages}{''.join(letter * holds for letter, holds in marks)}"

    def shared_bytes(self, depth: int, columns: int) -> int:
        return 2 * (self.queries * lines(depth) + self.stages * self.keys * (lines(depth) + lines(columns)))

    def microseconds(self, work: FlashWork) -> float:
        """About how long it takes."""
        blocks = work.heads * -(-work.queries // self.queries)
        causal = _CAUSAL_STAYING if self.stays else _CAUSAL
        tiles = -(-work.keys // self.keys) * (causal if work.causal else 1)
        slower = _FIXED + (1 - _FIXED) * (lines(work.depth) + lines(work.columns)) / (2 * _LINE)
        rounds, device = self._rounds(blocks, work), work.device.attention
        times = device.shapes[self.name]
        slower *= (1 + _PER_EXTRA * work.extra) * (1 + _PER_REGISTER * self._missing_registers(work))
        each = tiles * times.tile * slower
        if self.stays:
            return device.launch - _EARLY + device.slower * (times.block + rounds * (_STAYING * times.block + each))
        return device.launch - _EARLY + device.slower * (rounds * (times.block + each))

    def _rounds(self, blocks: int, work: FlashWork) -> float:
        """How many blocks a processor has: with causal attention the last ones are short, and even out the others."""
        processors = work.device.processors
        return max(1.0, blocks / processors) if work.causal else -(-blocks // processors)

    def _missing_registers(self, work: FlashWork) -> float:
        """Those that a thread would need beside the ones it has: what is there no room for goes through memory."""
        needed = self.held(work.columns) + work.extra * self.keys / 4 + _OTHER_REGISTERS
        return max(0.0, needed - most_registers(self.groups, fixed=work.fixed_registers))

    def held(self, columns: int) -> int:
        """Scores and results of a thread; where products overlap also the weights of the tile before, two in each."""
        return self.keys // 2 + lines(columns) // 2 + (self.keys // 4 if self.overlaps else 0)

    def has_registers(self, columns: int, *, fixed: bool) -> bool:
        """Whether a thread has enough."""
        return self.held(columns) + _OTHER_REGISTERS <= most_registers(self.groups, fixed=fixed)


def lines(width: int) -> int:
    """The elements of as many lines as a head takes."""
    return -(-width // _LINE) * _LINE


_SHAPES = (
    GroupShape.of(1, 128, 2),
    GroupShape.of(2, 128, 2),
    GroupShape.of(3, 128, 2),
    GroupShape.of(3, 64, 3),
    GroupShape.of(2, 64, 3),
    GroupShape.of(2, 128, 3, "o"),
    GroupShape.of(2, 64, 4, "o"),
    GroupShape.of(2, 128, 2, "o"),
    GroupShape.of(2, 128, 2, "op"),
    GroupShape.of(2, 128, 3, "otp"),
    GroupShape.of(3, 128, 3, "ot"),
    GroupShape.of(3, 64, 4, "o"),
    GroupShape.of(3, 64, 4, "op"),
)


def group_shapes(depth: int, columns: int, device: GpuDevice, *, fixed: bool = False) -> tuple[GroupShape, ...]:
    """The shapes for heads of a depth and a number of columns: what registers and shared memory hold.

    Registers are `fixed` where warpgroups cannot give any to others.
    """
    most = device.shared_bytes - _OTHER_BYTES
    if max(depth, columns) > _MAX_HEAD_SIZE or depth % 8 or columns % 8:
        return ()
    return tuple(
        shape
        for shape in _SHAPES
        if shape.shared_bytes(depth, columns) <= most
        and shape.has_registers(columns, fixed=fixed)
        and (shape.groups < 3 or shape.overlaps or lines(columns) <= _LINE)
    )
