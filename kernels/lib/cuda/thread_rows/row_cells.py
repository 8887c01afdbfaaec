"""What neighbouring windows read of a row whose cells are neighbours in memory: each cell once, most of them together.

A thread has the windows of `results` neighbours. Cells are numbered from the one where its first window would start
without padding, so that those with negative numbers are padding or belong to the thread before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.layout import vector_width
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.simt_words import Access, element_at, load_fragment
from mlirt.kernels.lib.language.words import is_inside, static_range
from mlirt.kernels.lib.nests.taps import Axis
from mlirt.kernels.lib.tactics.lowering import Lowering

_MAX_ACCESS_BYTES = 16  # bytes of an access
_MAX_THREAD_CELLS = 48  # cells that a thread reads of a row


@dataclass(frozen=True)
class RowCells:
    """The windows of a thread along an axis, and `together` cells that lie in memory as one access needs it."""

    axis: Axis
    results: int
    together: int

    def number(self, result: int, tap: int) -> int:
        """The cell that a tap of a window reads."""
        assert isinstance(self.axis.pre, int)
        return result * self.axis.stride + tap * self.axis.dilation - self.axis.pre

    def numbers(self) -> list[int]:
        """All cells that are read."""
        assert isinstance(self.axis.size, int)
        return sorted({self.number(result, tap) for result in range(self.results) for tap in range(self.axis.size)})

    def pieces(self) -> list[tuple[int, int]]:
        """(first cell, cells) of each access: the cells that are needed of each aligned group."""
        groups: dict[int, list[int]] = {}
        for number in self.numbers():
            groups.setdefault(number // self.together, []).append(number)
        return [_around(group, number * self.together, self.together) for number, group in sorted(groups.items())]

    def is_inside(self, first: int, count: int) -> bool:
        """Whether a piece is a part of the input for every thread."""
        room = self.axis.length - self.axis.output * self.axis.stride
        own = first >= 0 and first + count <= self.results * self.axis.stride
        return own and isinstance(room, int) and room >= 0


def _around(numbers: Sequence[int], first: int, count: int) -> tuple[int, int]:
    """The smallest half of a half .. of an aligned group that has these cells."""
    while count > 1:
        half = first + count // 2
        if numbers[0] >= half:
            first = half
        elif numbers[-1] >= half:
            break
        count //= 2
    return first, count


def row_cells(source: SSAValue, along: int, axis: Axis, most: int, lowering: Lowering) -> RowCells | None:
    """As many neighbouring windows as fit into whole vectors, at most so many; None where that is only one."""
    if not isinstance(axis.pre, int) or not isinstance(axis.size, int):
        return None
    steps = lowering.placements[source].strides
    if steps[along] != 1:
        return None
    others = [step for k, step in enumerate(steps) if k != along]
    results = vector_width(most, axis.output)
    together = min(widest_access(source, others, lowering), _MAX_ACCESS_BYTES // byte_width(element_of(source.type)))
    together = vector_width(together, results * axis.stride, axis.length)
    found = RowCells(axis, results, together)
    return found if results > 1 and together > 1 and len(found.numbers()) <= _MAX_THREAD_CELLS else None


class RowReader:
    """Reads the cells of rows in a kernel."""

    def __init__(self, k: KernelBuilder, cells: RowCells, memory: Value) -> None:
        self.cells, self.memory, self.length = cells, memory, k.size(cells.axis.length)

    @kernel
    def read(self, row: Value, inside: bool, block: Value) -> dict[int, tuple[Value, bool]]:
        """Each cell that the `block`-th thread of a row needs, and whether it is in the input.

        `row` is the index of the row's first cell; a row that is not `inside` has none. Other cells are zero.
        """
        cells, found = self.cells, dict[int, tuple[Value, bool]]()
        first = block * (cells.results * cells.axis.stride)
        for start, count in cells.pieces():
            place = first + start if start >= 0 else first - -start
            valid = inside and (cells.is_inside(start, count) or is_inside(place, self.length))
            room = None if valid is True else count if valid else 0
            loaded = load_fragment(self.memory, row + place, Access(static_range(count), valid=room, wide=count > 1))
            for lane in static_range(count):
                found[start + lane] = element_at(loaded, lane), valid
        return found


__all__ = ["RowCells", "RowReader", "row_cells"]
