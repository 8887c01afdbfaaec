"""When operands lie across the result in memory: which tiles a block transposes in shared memory, and how wide it
accesses them.

The result's last loop is the one along which its memory is contiguous. An operand that is contiguous along another
loop, the cross loop, is transposed: a tile of it is read along the cross loop and used along the last one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.dialects.tensor_types import is_bool
from mlirt.dialects.typical_sizes import typical
from mlirt.kernels.lib.loops.stream import Stream
from mlirt.kernels.lib.pooled_planes import MIN_ELEMENTS

THREADS = 256
_ELEMENTS = 4096  # of a tile
_MAX_SIDE = 64  # a side of a tile, where the other side is long enough too
_SHARED_BYTES = 40 * 1024


@dataclass(frozen=True)
class TransposedPlan:
    """The tiles of one launch: `tall` iterations of the `cross` loop by `wide` of the last loop."""

    extents: tuple[Dim, ...]
    inputs: tuple[Stream, ...]
    output: Stream
    cross: int
    transposed: tuple[int, ...]
    tall: int
    wide: int

    @property
    def last(self) -> int:
        return len(self.extents) - 1

    @property
    def outer(self) -> list[int]:
        """The loops that blocks are spread over besides the tiles."""
        return [axis for axis in range(self.last) if axis != self.cross]

    @property
    def tiles(self) -> tuple[Dim, Dim]:
        """How many tiles there are along the cross loop and the last one."""
        return ceil_div(self.extents[self.cross], self.tall), ceil_div(self.extents[self.last], self.wide)

    @property
    def blocks(self) -> Dim:
        return product([*(self.extents[axis] for axis in self.outer), *self.tiles])

    def pitch(self, operand: int) -> int:
        """Elements from one row of a tile to the next: a word more than it has, so that columns spread over banks."""
        return self.wide + max(1, 4 // self.inputs[operand].width)

    @property
    def result_vector(self) -> int:
        """How many neighbours a thread computes at a time."""
        return min(self.output.vector(self.last, self.extents), self.wide)

    def tile_vector(self, operand: int) -> int:
        """How many neighbours a thread reads of a transposed operand at a time."""
        return min(self.inputs[operand].vector(self.cross, self.extents), self.tall)


def find(extents: Sequence[Dim], inputs: Sequence[Stream], output: Stream) -> TransposedPlan | None:
    """The plan of a nest whose last loop walks along the result's memory; None where nothing has to be transposed."""
    last = len(extents) - 1
    if last < 1 or output.steps[last] != 1 or typical(product(extents), {}) < MIN_ELEMENTS:
        return None
    transposed = {position: cross for position, one in enumerate(inputs) if (cross := _cross(extents, one)) is not None}
    if not transposed or any(is_bool(inputs[position].element) for position in transposed):
        return None
    cross = max(set(transposed.values()), key=list(transposed.values()).count)
    chosen = tuple(position for position, axis in transposed.items() if axis == cross)
    tall, wide = _tile(typical(extents[cross], {}), typical(extents[last], {}), [inputs[k].width for k in chosen])
    return TransposedPlan(tuple(extents), tuple(inputs), output, cross, chosen, tall, wide)


def _cross(extents: Sequence[Dim], one: Stream) -> int | None:
    """The loop along which an operand lies, where it is not the last one and the operand moves with that too."""
    last = len(extents) - 1
    if one.steps[last] in (0, 1):
        return None
    return next((axis for axis in range(last) if one.steps[axis] == 1 and extents[axis] != 1), None)


def _tile(across: int, along: int, widths: Sequence[int]) -> tuple[int, int]:
    """The sides of a tile, powers of two that are not much longer than the loops."""
    elements = _ELEMENTS
    while elements > THREADS and elements * sum(widths) * 1.1 > _SHARED_BYTES:
        elements //= 2
    short = min(_power_of_two(across), _power_of_two(along), _MAX_SIDE, elements // _MAX_SIDE)
    if along <= across:
        wide = min(_power_of_two(along), short)
        return elements // wide, wide
    tall = min(_power_of_two(across), short)
    return tall, elements // tall


def _power_of_two(number: int) -> int:
    """The least power of two that is not less."""
    return 1 << max(number - 1, 0).bit_length()
