"""How the threads of a block bring the tiles of one operand to shared memory."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.buffers import memory
from mlirt.dialects.kernel.fragment_map import element_type
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import (
    Access,
    copy_async,
    count_where,
    elementwise,
    load_fragment,
    store_fragment,
)
from mlirt.kernels.lib.language.words import extent, static_range

MIN_COPY = 4
"""Bytes of the smallest asynchronous copy."""


class Loader(ABC):
    """Brings the tile of a step to a stage: `start` at once and asynchronously, or `fetch` to registers and `put`."""

    tile: TileMemory
    is_async: bool

    @property
    def can_fetch(self) -> bool:
        """Whether tiles can come through registers as well, where they are copied asynchronously."""
        return False

    def start(self, step: Value, stage: Index) -> None:
        """Start asynchronous copies."""
        raise NotImplementedError

    def fetch(self, step: Value, wanted: bool) -> list[Value]:
        """Read to registers; zeros where `wanted` does not hold."""
        raise NotImplementedError

    def put(self, fragments: Sequence[Value], stage: Index) -> None:
        """Write what `fetch` gave."""
        raise NotImplementedError


def rounded(loaded: Value, element: Attribute) -> Value:
    """A fragment of float32 as one of the halves that a tile has; one that has the tile's type as it is."""
    if element_type(loaded) == element:
        return loaded

    def narrow(number: SSAValue) -> Value:
        return emit(arith.TruncFOp(number, element))  # pyright: ignore[reportArgumentType]

    return elementwise(narrow, element, loaded)


@dataclass(frozen=True)
class Matrix:
    """Element (i, j) of an operand at `base + i * outer + j` in `buffer`; `wide` elements are aligned, rows too.

    Lines of the tile are along i, its width along j. `by_depth` says that i is the dimension of the sum, else j is.
    Elements with i from `lines` on or j from `width` on count as zero.
    """

    buffer: SSAValue
    base: Value
    outer: Index
    lines: Dim
    width: Dim
    by_depth: bool
    wide: int


class MatrixLoader(Loader):
    """A matrix whose rows become lines of the tile; wider elements are rounded to those of the tile on their way."""

    def __init__(self, matrix: Matrix, tile: TileMemory, thread: Value, threads: int, first: Value) -> None:
        """`first` is where the tile starts along the dimension that is not the sum's."""
        self.matrix, self.tile = matrix, tile
        self.element: Attribute = memory(matrix.buffer).get_element_type()
        self.target = memory(tile.buffer).get_element_type()
        self.is_async = matrix.wide * byte_width(self.element) >= MIN_COPY and self.element == self.target
        across = tile.width // matrix.wide
        self.step = threads // across  # lines
        self.count = max(1, tile.lines // self.step)
        self.spare = tile.lines < self.step
        """Whether there are more threads than places: the others have nothing to do."""
        self.line, self.column = _place(thread, across, matrix.wide)
        self.first = first
        self.depth = tile.lines if matrix.by_depth else tile.width

    @property
    def can_fetch(self) -> bool:
        return True

    @kernel
    def _position(self, step: Value) -> tuple[Value, Value]:
        """Row and column in the matrix of the thread's first place."""
        along, by_depth = step * self.depth, self.matrix.by_depth
        return (along if by_depth else self.first) + self.line, (self.first if by_depth else along) + self.column

    @kernel
    def _valid(self, row: Value, column: Value) -> Index | None:
        """How many of the `wide` elements at a place exist; None: all."""
        matrix, tile, valid = self.matrix, self.tile, None
        if not is_multiple(matrix.width, tile.width):
            valid = extent(matrix.width) - column
        if not is_multiple(matrix.lines, tile.lines):
            valid = (matrix.wide if valid is None else valid) if row < extent(matrix.lines) else 0
        if self.spare:
            valid = (matrix.wide if valid is None else valid) if self.line < tile.lines else 0
        return valid

    @kernel
    def start(self, step: Value, stage: Index) -> None:
        matrix, tile = self.matrix, self.tile
        row, column = self._position(step)
        if not self.spare or self.line < tile.lines:
            for number in static_range(self.count):
                here = row + number * self.step
                source = matrix.base + here * matrix.outer + column
                target = tile.at(stage, self.line + number * self.step, self.column)
                copy_async(matrix.buffer, source, tile.buffer, target, matrix.wide, self._valid(here, column))

    @kernel
    def fetch(self, step: Value, wanted: bool) -> list[Value]:
        matrix, fragments = self.matrix, list[Value]()
        row, column = self._position(step)
        whole = matrix.wide > 1 and is_multiple(matrix.width, matrix.wide)
        for number in static_range(self.count):
            here = row + number * self.step
            index = matrix.base + here * matrix.outer + column
            valid = self._valid(here, column)
            if wanted is not True:
                valid = (matrix.wide if valid is None else valid) if wanted else 0
            access = Access(static_range(matrix.wide), valid=valid, wide=whole)
            fragments = [*fragments, rounded(load_fragment(matrix.buffer, index, access), self.target)]
        return fragments

    @kernel
    def put(self, fragments: Sequence[Value], stage: Index) -> None:
        tile, wide = self.tile, self.matrix.wide
        if not self.spare or self.line < tile.lines:
            for number, fragment in enumerate(fragments):
                index = tile.at(stage, self.line + number * self.step, self.column)
                store_fragment(fragment, tile.buffer, index, Access(static_range(wide), wide=wide > 1))


class TransposingLoader(Loader):
    """A matrix of 4-byte elements whose rows become columns of the tile, so that the depth gives the lines.

    A warp copies 8 neighbours along the depth, which are one sector of memory, from each of 4 rows: as lines of the
    tile are 4 banks apart, all of them go to different banks.
    """

    is_async = True

    def __init__(self, matrix: Matrix, tile: TileMemory, thread: Value, threads: int, first: Value) -> None:
        self.matrix, self.tile, self.first = matrix, tile, first
        self.deep, self.row = _place_in_sectors(thread)
        self.step = threads // _SECTOR

    @kernel
    def start(self, step: Value, stage: Index) -> None:
        matrix, tile = self.matrix, self.tile
        deep, row = step * tile.lines + self.deep, self.first + self.row
        whole_depth, whole_rows = is_multiple(matrix.width, tile.lines), is_multiple(matrix.lines, tile.width)
        first = matrix.base + row * matrix.outer + deep
        target = tile.at(stage, self.deep, self.row)
        for below in static_range(0, tile.width, self.step):
            start, apart = first, 0  # constant distances are offsets of the copies
            if isinstance(matrix.outer, int):
                apart = below * matrix.outer
            else:
                start = first + matrix.outer * below
            exists = whole_rows or row + below < extent(matrix.lines)
            for on in static_range(0, tile.lines, _SECTOR):
                inside = exists and (whole_depth or deep + on < extent(matrix.width))
                offsets = (apart + on, on * tile.pitch + below)
                copy_async(matrix.buffer, start, tile.buffer, target, 1, count_where(inside, 1), offsets)


@kernel
def _place(thread: Value, across: int, wide: int) -> tuple[Value, Value]:
    """The first line of a thread and its column, of threads next to each other and then behind each other."""
    return thread // across, thread % across * wide


@kernel
def _place_in_sectors(thread: Value) -> tuple[Value, Value]:
    """The place of a thread in its sector, and the number of that."""
    return thread % _SECTOR, thread // _SECTOR


_SECTOR = 8
"""Elements of 4 bytes in what memory moves at once."""
