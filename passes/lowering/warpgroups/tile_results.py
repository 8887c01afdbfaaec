"""The results of a tile whose sums a warpgroup has in registers: what the epilogue reads is on its way in time.

A thread reads the extra operands of a piece of its results while it computes earlier pieces: all of them before the
tile is multiplied where there are registers for them, else some pieces ahead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.fragment_map import FragmentPartOp
from mlirt.dialects.kernel.warpgroup import ROWS, JoinColumnsOp
from mlirt.dialects.symbolic import Dim
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.warpgroups.group_sizes import GroupSizes, Work
from mlirt.passes.lowering.warpgroups.group_tile import GroupTile
from mlirt.passes.lowering.warpgroups.row_epilogue import QUAD, WIDTH, RowEpilogue

# By the most columns of a tile: results of a piece, and pieces that are read ahead; None: all, before the products.
_PIECES: dict[int, tuple[int, int | None]] = {128: (4 * WIDTH, None), 192: (2 * WIDTH, 2), 256: (WIDTH, 3)}


@dataclass(frozen=True)
class Piece:
    """Columns of a row that a thread computes at once, `first` .. of its sums; `extras` once they are read."""

    first: int
    count: int
    at: list[SSAValue]
    column: SSAValue
    valid: SSAValue | None
    is_row: SSAValue | None
    extras: list[SSAValue] | None = None


class TileResults:
    """Writes the results of tiles. `in_thread_order` tells of the columns that are multiplied by."""

    def __init__(
        self, k: KernelBuilder, tile: GroupTile, sizes: GroupSizes, epilogue: RowEpilogue, *, in_thread_order: bool
    ) -> None:
        self.k, self.tile, self.sizes, self.epilogue = k, tile, sizes, epilogue
        self.joined = 2 if in_thread_order else WIDTH
        self.length, self.ahead = _PIECES[min(most for most in _PIECES if tile.columns <= most)]

    def begin(self, thread: SSAValue, group: SSAValue, work: Work) -> list[Piece]:
        """What a thread has to write of a tile, before the tile is multiplied."""
        k = self.k
        lane, warp = k.rem(thread, 32), k.rem(k.div(thread, 32), 4)
        row = k.add(k.add(work.row, k.mul(group, ROWS)), k.add(k.mul(warp, 16), k.div(lane, 4)))
        column = k.add(work.column, k.mul(k.rem(lane, 4), WIDTH))
        per_row = self.tile.columns // 4
        rows = [self._row(k.add(row, 8 * half), work.batch) for half in range(2)]
        pieces: list[Piece] = []
        for first in range(0, per_row, self.length):
            here = k.add(column, first // WIDTH * QUAD)
            count, valid = min(self.length, per_row - first), self._valid(here)
            pieces += [
                Piece(half * per_row + first, count, *rows[half][:1], here, valid, rows[half][1]) for half in (0, 1)
            ]
        return [self._read(piece) for piece in pieces] if self.ahead is None else pieces

    def write(self, sums: SSAValue, pieces: list[Piece]) -> None:
        """The results, once the sums are there."""
        joined = self.k.value(JoinColumnsOp(sums, self.joined))
        ahead = len(pieces) if self.ahead is None else self.ahead
        ready = [self._read(piece) for piece in pieces[:ahead]]
        for number, piece in enumerate(pieces):
            ready += [self._read(one) for one in pieces[number + ahead : number + ahead + 1]]
            part = self.k.value(FragmentPartOp(joined, piece.first, piece.count))
            self._write(part, ready[number])

    def write_row(self, sums: SSAValue, row: SSAValue, column: SSAValue, batch: SSAValue) -> None:
        """The results of neighbouring columns of a row."""
        at, is_row = self._row(row, batch)
        self._write(sums, self._read(Piece(0, WIDTH, at, column, self._valid(column), is_row)))

    def _row(self, row: SSAValue, batch: SSAValue) -> tuple[list[SSAValue], SSAValue | None]:
        """Where a row is, and whether it is one: else the place of the last one."""
        k = self.k
        if _divides(self.tile.rows, self.sizes.rows):
            return self.epilogue.at(batch, row), None
        rows = k.size(self.sizes.rows)
        return self.epilogue.at(batch, k.min(row, k.sub(rows, 1))), k.compare("slt", row, rows)

    def _valid(self, column: SSAValue) -> SSAValue | None:
        return None if _divides(self.tile.columns, self.sizes.columns) else self.epilogue.valid(column)

    def _read(self, piece: Piece) -> Piece:
        if piece.extras is not None:
            return piece
        return replace(piece, extras=self.epilogue.read(piece.count, piece.at, piece.column, piece.valid))

    def _write(self, sums: SSAValue, piece: Piece) -> None:
        assert piece.extras is not None
        self.epilogue.write(sums, piece.extras, piece.at, piece.column, piece.valid, piece.is_row)


def _divides(tile: int, size: Dim) -> bool:
    return isinstance(size, int) and size % tile == 0
