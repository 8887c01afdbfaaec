"""Results of a deconvolution by two along its rows: a thread has both remainders of a channel, and interleaves them.

Rows 8 lines apart of a tile are the two remainders of a channel, so that a thread has them of the same positions: 16
neighbouring pixels of eight.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.kernel.warpgroup import ROWS, WARPGROUP, JoinColumnsOp
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_sizes import Work
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.plane_walk import GROUP, PlaneWalk
from mlirt.kernels.lib.cuda.warpgroups.row_epilogue import QUAD, RowEpilogue
from mlirt.kernels.lib.cuda.warpgroups.tile_results import Piece, Results
from mlirt.kernels.lib.deconvolution_phases import AlignedAxis
from mlirt.kernels.lib.language import Index, Value
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import count_where, element_at, fragment, part_of
from mlirt.kernels.lib.language.values import bool_of, value_of

PAIR = 2
"""The stride along rows."""
WIDTH = PAIR * GROUP
"""Neighbouring columns of a thread."""


@dataclass(frozen=True)
class PairedResults:
    """Writes the results of tiles whose rows are `16 q + 8 t + c`: channel `8 q + c`, remainder `t` along the rows.

    An entry of the batch is an image and the remainders along the other `axes`; `walk` tells what position a column is.
    """

    k: KernelBuilder
    tile: GroupTile
    epilogue: RowEpilogue
    walk: PlaneWalk
    axes: Sequence[AlignedAxis]
    channels: int

    def initialise(self) -> None:
        """There is nothing to make."""

    def copy_ahead(self, tile: Index, work: Work) -> None:
        """Nothing is copied ahead."""

    def begin(self, thread: Value, group: Value, work: Work, tile: Index | None = None) -> Results:
        """What a thread has to write of a tile."""
        k, own, count = self.k, self.tile.rows // PAIR, self._entries
        lane, warp = k.rem(thread, WARP), k.rem(k.div(thread, WARP), WARPGROUP // WARP)
        quad, line = k.rem(lane, QUAD), k.div(lane, QUAD)
        first = k.add(k.div(work.row, PAIR), k.add(k.mul(group, ROWS // PAIR), k.mul(warp, GROUP)))
        channel = k.add(first, line)
        image, remainder = (k.div(work.batch, count), k.rem(work.batch, count)) if count > 1 else (work.batch, 0)
        at = self.epilogue.at(image, k.min(channel, self.channels - 1))
        is_row = bool_of(k.compare("slt", channel, self.channels)) if self.channels % own else None
        pieces = list[Piece]()
        for number in range(0, self.tile.columns // 4, GROUP):
            start = k.add(work.column, k.add(k.mul(quad, GROUP), number * QUAD))
            column, valid = self._place(start, remainder)
            pieces.append(Piece(number, WIDTH, at, column, valid, is_row))
        return Results(pieces)

    @property
    def _entries(self) -> int:
        """The remainders along the dimensions in front."""
        count = 1
        for axis in self.axes[:-1]:
            count *= axis.stride
        return count

    def _place(self, column: SSAValue, remainder: SSAValue | int) -> tuple[Value, Index]:
        """The column of the result for the first of a group of positions, and how many pixels from there exist."""
        k, walk = self.k, self.walk
        row, left = (k.div(column, walk.pitch), k.rem(column, walk.pitch)) if walk.count > 1 else (k.index(0), column)
        at: list[SSAValue] = []
        for axis in reversed(range(walk.lead)):
            at.insert(0, k.rem(row, walk.made[axis]) if axis else row)
            row = k.div(row, walk.made[axis]) if axis else row
        for axis in range(walk.lead, len(walk.sizes)):
            step = 1
            for size in walk.sizes[axis + 1 :]:
                step *= size
            at.append(k.div(left, step) if step > 1 else left)
            left = k.rem(left, step) if step > 1 else left
        exists: SSAValue | bool | None = None
        found: SSAValue = k.index(0)
        scale = self._entries
        for axis, position in zip(self.axes[:-1], at[:-1], strict=True):
            scale //= axis.stride
            own = k.rem(k.div(k.index(remainder), scale), axis.stride) if axis.stride > 1 else k.index(0)
            here = k.add(k.mul(position, axis.stride), own)
            exists = k.both(exists, k.compare("slt", here, axis.output))
            found = k.add(k.mul(found, axis.output), here)
        across = k.mul(at[-1], PAIR)
        valid = value_of(k.max(k.min(k.sub(self.axes[-1].output, across), WIDTH), 0))
        found = k.add(k.mul(found, self.axes[-1].output), across)
        left_over = valid if exists is None else count_where(exists, valid)
        return value_of(found), valid if left_over is None else left_over

    def write(self, accumulators: Value, results: Results) -> None:
        """The results, once the accumulators are there."""
        joined, half = emit(JoinColumnsOp(accumulators, GROUP)), self.tile.columns // 4
        for piece in results.pieces:
            both = [part_of(joined, number * half + piece.first, GROUP) for number in range(PAIR)]
            values = fragment([element_at(one, number) for number in range(GROUP) for one in both])
            extras = [self._read(number, piece) for number in self.epilogue.extras]
            self.epilogue.write(values, extras, piece.at, piece.column, piece.valid, piece.is_row)

    def _read(self, number: int, piece: Piece) -> Value:
        return self.epilogue.read(number, WIDTH, piece.at, piece.column, piece.valid)


__all__ = ["PAIR", "WIDTH", "PairedResults"]
