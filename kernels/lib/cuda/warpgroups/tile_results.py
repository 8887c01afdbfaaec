"""The results of a tile whose sums a warpgroup has in registers: what the epilogue reads is on its way in time.

A thread reads what its results need of the extra operands before the tile is multiplied where there are registers for
it, else some pieces of its results ahead. What differs from row to row goes first: what all rows share is in a cache.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.warpgroup import ROWS, JoinColumnsOp
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.cuda.warpgroups.extra_tiles import ExtraTiles, SlotUse
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import GroupSizes, Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import QUAD, WIDTH, Column, RowEpilogue
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import part_of
from mlirt.kernels.lib.language.words import extent, place, static_range

# By the most columns of a tile: results of a piece, and pieces that are read ahead; None: all, before the products.
_PIECES: dict[int, tuple[int, int | None]] = {128: (4 * WIDTH, None), 192: (2 * WIDTH, 2), 256: (WIDTH, 3)}
_LATE = (2 * WIDTH, 1)  # where only what rows share is not read before the products
_REGISTERS = 132  # for sums and what is read before the products; a thread has 168
_WORD = 4  # bytes of a register


@dataclass(frozen=True)
class Piece:
    """Columns of a row that a thread computes at once, `first` .. of its accumulators; `extras` by number, as far as
    read.
    """

    first: int
    count: int
    at: list[Value]
    column: Column
    valid: Index | None
    is_row: bool | None
    extras: tuple[tuple[int, Value], ...] = ()


@dataclass(frozen=True)
class Results:
    """The pieces of a tile, and where its part of the operand is that was copied ahead."""

    pieces: list[Piece]
    use: SlotUse | None = None
    place: Value | None = None


class RowPlaces(Protocol):
    """Which rows of the result the rows of a tile are."""

    def place(self, work: Work, row: Value) -> tuple[Value, bool | None]:
        """The row of the result, and whether it is one (None: always): else some row that exists."""
        ...


class RowsInOrder:
    """Rows of a tile that follow each other in the result."""

    def __init__(self, k: KernelBuilder, tile: GroupTile, sizes: GroupSizes) -> None:
        self.k, self.tile, self.sizes = k, tile, sizes

    @kernel
    def place(self, work: Work, row: Value) -> tuple[Value, bool | None]:
        """Behind the last row comes that one again."""
        if is_multiple(self.sizes.rows, self.tile.rows):
            return work.row + row, None
        rows, here = extent(self.sizes.rows), work.row + row
        return min(here, rows - 1), here < rows


class TileResults:
    """Writes the results of tiles. `in_fragment_order` tells of the columns that are multiplied by."""

    def __init__(
        self,
        k: KernelBuilder,
        tile: GroupTile,
        sizes: GroupSizes,
        epilogue: RowEpilogue,
        *,
        in_fragment_order: bool,
        places: RowPlaces | None = None,
    ) -> None:
        self.k, self.tile, self.sizes, self.epilogue = k, tile, sizes, epilogue
        self.places = places or RowsInOrder(k, tile, sizes)
        self._of_rows: SSAValue | None = None  # the column from which on all rows share what they read
        self._first: Value | None = None  # the first one of a thread then
        self.width = epilogue.width
        self.joined = 2 if in_fragment_order else self.width
        length, self.ahead = _PIECES[min(most for most in _PIECES if tile.columns <= most)]
        self.ahead_of_time = self._copied_ahead()
        self.early = self._early()
        if self.ahead_of_time is not None or 0 < len(self.early) < len(epilogue.extras):
            length, self.ahead = _LATE
        self.length = max(length, self.width)

    def _copied_ahead(self) -> ExtraTiles | None:
        """The first extra operand that can be, if the tile is one that has it copied."""
        for number in self.epilogue.extras if self.tile.extra else ():
            memory = self.epilogue.as_matrix(number)
            if memory is not None and byte_width(memory.element) == self.tile.extra:
                return ExtraTiles(self.k, self.tile, memory, number, self.width)
        return None

    def _early(self) -> Collection[int]:
        """The numbers of the extra operands that are read before the products."""
        epilogue, accumulators = self.epilogue, self.tile.columns // 2
        copied = None if self.ahead_of_time is None else self.ahead_of_time.number
        moving = [number for number in epilogue.extras if not epilogue.is_fixed(number) and number != copied]
        registers = accumulators + sum(accumulators * epilogue.bytes_of(number) // _WORD for number in moving)
        fixed = [number for number in epilogue.extras if epilogue.is_fixed(number)]
        shared = sum(accumulators // 2 * epilogue.bytes_of(number) // _WORD for number in fixed)
        if self.ahead is None and registers + shared <= _REGISTERS:
            return [number for number in epilogue.extras if number != copied]
        return moving if registers <= _REGISTERS else ()

    def initialise(self) -> None:
        """Make the barriers of what is copied ahead, in one thread."""
        if self.ahead_of_time is not None:
            self.ahead_of_time.initialise()

    def copy_ahead(self, tile: Index, work: Work) -> None:
        """One thread starts to copy what the results of the `tile`-th tile of a block need."""
        if self.ahead_of_time is not None:
            self.ahead_of_time.load(tile, work)

    @kernel
    def prepare(self, thread: Value, column: Value) -> None:
        """Read what all rows share, once for all tiles that begin with a column."""
        epilogue, own = self.epilogue, column + thread % QUAD * self.width
        self._share(column, own)
        for first in self._firsts:
            here = Column(own, self._place_of(first))
            at, valid = [place(0)] * len(epilogue.extents), self._valid(here)
            for number in filter(epilogue.is_fixed, epilogue.extras):
                epilogue.read(number, self._count(first), at, here, valid)

    def _share(self, column: Value, own: Value) -> None:
        self._of_rows, self._first = column, own

    @property
    def _firsts(self) -> list[int]:
        """The first sum of each piece of a row."""
        return list(range(0, self.tile.columns // 4, self.length))

    def _count(self, first: int) -> int:
        """The sums of a piece."""
        return min(self.length, self.tile.columns // 4 - first)

    def _place_of(self, first: int) -> int:
        """The column of one of a thread's sums in a row, from its first one on."""
        return first // self.width * QUAD * self.width

    @kernel
    def begin(self, thread: Value, group: Value, work: Work, tile: Index | None = None) -> Results:
        """What a thread has to write of the `tile`-th tile of a block, before that is multiplied."""
        copied, use, start = self.ahead_of_time, None, None
        if copied is not None and tile is not None:
            use = copied.use(tile)
            start = copied.place(use, group, thread)
        row = group * ROWS + (thread // WARP % 4 * 16 + thread % WARP // QUAD)
        if self._first is not None and self._of_rows is work.column:
            column = self._first
        else:
            column = work.column + thread % QUAD * self.width
        halves = [self._half(work, row + 8 * half) for half in static_range(2)]
        pieces = list[Piece]()
        for first in self._firsts:
            pieces += self._pieces(work, halves, column, first)
        return Results([self._read(piece, self.early) for piece in pieces], use, start)

    def _pieces(
        self, work: Work, halves: Sequence[tuple[list[Value], bool | None]], column: Value, first: int
    ) -> list[Piece]:
        """Those of both rows of a thread that begin with a sum of its first row."""
        here = Column(column, self._place_of(first))
        valid, second = self._valid(here), self.tile.columns // 4
        return [
            Piece(half * second + first, self._count(first), at, here, valid, is_row)
            for half, (at, is_row) in enumerate(halves)
        ]

    def _half(self, work: Work, row: Value) -> tuple[list[Value], bool | None]:
        """Where a row of a tile is in the result, and whether it is there (None: always)."""
        here, is_row = self.places.place(work, row)
        return self.epilogue.at(work.batch, here), is_row

    @kernel
    def write(self, accumulators: Any, results: Results) -> None:
        """The results, once the accumulators are there."""
        pieces, copied, use = results.pieces, self.ahead_of_time, results.use
        joined = self.joined_columns(accumulators)
        ahead = len(pieces) if self.ahead is None else self.ahead
        if copied is not None and use is not None:
            copied.wait(use)
        ready = [self._read_rest(piece, results.place) for piece in pieces[:ahead]]
        for number, piece in enumerate(pieces):
            ready += [self._read_rest(one, results.place) for one in pieces[number + ahead : number + ahead + 1]]
            if copied is not None and use is not None and number == max(0, len(pieces) - 1 - ahead):
                copied.give_back(use)
            self._write(self.part(joined, piece), ready[number])

    def joined_columns(self, accumulators: Any) -> Any:
        """Row by row, neighbouring columns of a thread."""
        return emit(JoinColumnsOp(accumulators, self.joined))

    def part(self, joined: Any, piece: Piece) -> Value:
        """The accumulators of a piece."""
        return part_of(joined, piece.first, piece.count)

    def _read_rest(self, piece: Piece, place: Value | None) -> Piece:
        """With all extra operands, also the one that was copied ahead to a place."""
        copied = self.ahead_of_time
        if copied is not None and place is not None:
            half, first = divmod(piece.first, self.tile.columns // 4)
            value = copied.read(place, half, range(first, first + piece.count))
            piece = replace(piece, extras=(*piece.extras, (copied.number, value)))
        return self._read(piece, self.epilogue.extras)

    def write_row(self, accumulators: Value, row: Value, column: Value, batch: Value) -> None:
        """The results of neighbouring columns of a row."""
        at, is_row = self._half(Work(row, column, batch), place(0))
        piece = Piece(0, self.width, at, Column(column), self._valid(Column(column)), is_row)
        self._write(accumulators, self._read(piece, self.epilogue.extras))

    def _valid(self, column: Column) -> Index | None:
        return None if is_multiple(self.sizes.columns, self.tile.columns) else self.epilogue.valid(column)

    def _read(self, piece: Piece, wanted: Collection[int]) -> Piece:
        """With the extra operands of these numbers, those included that it has."""
        have = dict(piece.extras)
        place = piece.count, piece.at, piece.column, piece.valid
        read = {number: self.epilogue.read(number, *place) for number in wanted if number not in have}
        return replace(piece, extras=tuple((have | read).items()))

    def _write(self, accumulators: Value, piece: Piece) -> None:
        extras = [value for _, value in sorted(piece.extras, key=lambda extra: extra[0])]
        self.epilogue.write(accumulators, extras, piece.at, piece.column, piece.valid, piece.is_row)
