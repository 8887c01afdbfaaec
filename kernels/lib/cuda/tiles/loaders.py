"""How the threads of a block bring the tiles of one operand to shared memory."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.async_copy import CopyAsyncOp
from mlirt.dialects.kernel.buffers import length, memory
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.fragment_map import MapFragmentOp, element_type
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.simt_words import Access, store_fragment
from mlirt.kernels.lib.language.words import static_range

MIN_COPY = 4
"""Bytes of the smallest asynchronous copy."""


class Loader(ABC):
    """Brings the tile of a step to a stage: `start` at once and asynchronously, or `fetch` to registers and `put`."""

    tile: TileMemory
    is_async: bool

    def start(self, step: SSAValue, stage: SSAValue | int) -> None:
        """Start asynchronous copies."""
        raise NotImplementedError

    def fetch(self, step: SSAValue, wanted: SSAValue | None) -> list[SSAValue]:
        """Read to registers; zeros where the i1 `wanted` does not hold."""
        raise NotImplementedError

    def put(self, fragments: Sequence[SSAValue], stage: SSAValue | int) -> None:
        """Write what `fetch` gave."""
        raise NotImplementedError


def rounded(k: KernelBuilder, loaded: SSAValue, element: Attribute) -> SSAValue:
    """A fragment of float32 as one of the halves that a tile has; one that has the tile's type as it is."""
    if element_type(loaded) == element:
        return loaded
    made = MapFragmentOp([loaded], element, length(loaded))
    with k.inside(made.body.block):
        k.insert(YieldOp(operands=[[k.value(arith.TruncFOp(made.body.block.args[0], element))]]))
    return k.value(made)


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


class _Grid:
    """The places of a tile that a thread takes care of: (line, column) and every `step` lines below."""

    def __init__(self, k: KernelBuilder, thread: SSAValue, threads: int, lines: int, width: int, wide: int) -> None:
        across = width // wide
        self.step = threads // across
        self.count = max(1, lines // self.step)
        self.line, self.column = k.div(thread, across), k.mul(k.rem(thread, across), wide)
        # More threads than places: the others have nothing to do.
        self.spare = lines < self.step


class MatrixLoader(Loader):
    """A matrix whose rows become lines of the tile; wider elements are rounded to those of the tile on their way."""

    def __init__(
        self,
        k: KernelBuilder,
        matrix: Matrix,
        tile: TileMemory,
        thread: SSAValue,
        threads: int,
        first: SSAValue,
    ) -> None:
        """`first` is where the tile starts along the dimension that is not the sum's."""
        self.k, self.matrix, self.tile = k, matrix, tile
        self.element: Attribute = memory(matrix.buffer).get_element_type()
        self.target = memory(tile.buffer).get_element_type()
        self.is_async = matrix.wide * byte_width(self.element) >= MIN_COPY and self.element == self.target
        self.grid = _Grid(k, thread, threads, tile.lines, tile.width, matrix.wide)
        self.first = first
        self.depth = tile.lines if matrix.by_depth else tile.width

    def _position(self, step: SSAValue) -> tuple[Value, Value]:
        """Row and column in the matrix of the thread's first place."""
        k, along = self.k, self.k.mul(step, self.depth)
        start = (along, self.first) if self.matrix.by_depth else (self.first, along)
        return k.add(start[0], self.grid.line), k.add(start[1], self.grid.column)

    def _is_whole(self, size: Dim, tile: int) -> bool:
        return isinstance(size, int) and size % tile == 0

    def _valid(self, row: SSAValue, column: SSAValue) -> SSAValue | None:
        """How many of the `wide` elements at a place exist; None: all."""
        k, matrix = self.k, self.matrix
        valid: SSAValue | None = None
        if not self._is_whole(matrix.width, self.tile.width):
            valid = k.sub(k.size(matrix.width), column)
        conditions: list[SSAValue] = []
        if not self._is_whole(matrix.lines, self.tile.lines):
            conditions.append(k.compare("slt", row, k.size(matrix.lines)))
        if self.grid.spare:
            conditions.append(k.compare("slt", self.grid.line, self.tile.lines))
        for condition in conditions:
            valid = k.select(condition, matrix.wide if valid is None else valid, 0)
        return valid

    @kernel
    def start(self, step: SSAValue, stage: SSAValue | int) -> None:
        k, matrix, grid = self.k, self.matrix, self.grid
        row, column = self._position(step)
        if not grid.spare or grid.line < self.tile.lines:
            for number in static_range(grid.count):
                here = row + number * grid.step
                source = matrix.base + here * matrix.outer + column
                target = self.tile.at(k, stage, k.add(grid.line, number * grid.step), grid.column)
                valid = self._valid(here, column)
                k.insert(CopyAsyncOp(matrix.buffer, source, self.tile.buffer, target, matrix.wide, valid))

    def fetch(self, step: SSAValue, wanted: SSAValue | None) -> list[SSAValue]:
        k, matrix, grid = self.k, self.matrix, self.grid
        row, column = self._position(step)
        fragments: list[SSAValue] = []
        for number in range(grid.count):
            here = k.add(row, number * grid.step)
            index = k.add(k.add(matrix.base, k.mul(here, matrix.outer)), column)
            valid = self._valid(here, column)
            if wanted is not None:
                valid = k.select(wanted, matrix.wide if valid is None else valid, 0)
            whole = matrix.wide > 1 and self._is_whole(matrix.width, matrix.wide)
            read = LoadFragmentOp(matrix.buffer, index, range(matrix.wide), valid=valid, wide=whole)
            fragments.append(rounded(k, k.value(read), self.target))
        return fragments

    @kernel
    def put(self, fragments: Sequence[SSAValue], stage: SSAValue | int) -> None:
        k, grid, wide = self.k, self.grid, self.matrix.wide
        if not grid.spare or grid.line < self.tile.lines:
            for number, fragment in enumerate(fragments):
                index = self.tile.at(k, stage, k.add(grid.line, number * grid.step), grid.column)
                store_fragment(fragment, self.tile.buffer, index, Access(static_range(wide), wide=wide > 1))


class TransposingLoader(Loader):
    """A matrix of 4-byte elements whose rows become columns of the tile, so that the depth gives the lines.

    A warp copies 8 neighbours along the depth, which are one sector of memory, from each of 4 rows: as lines of the
    tile are 4 banks apart, all of them go to different banks.
    """

    is_async = True

    def __init__(
        self,
        k: KernelBuilder,
        matrix: Matrix,
        tile: TileMemory,
        thread: SSAValue,
        threads: int,
        first: SSAValue,
    ) -> None:
        self.k, self.matrix, self.tile, self.first = k, matrix, tile, first
        self.deep, self.row = k.rem(thread, _SECTOR), k.div(thread, _SECTOR)
        self.step = threads // _SECTOR

    def start(self, step: SSAValue, stage: SSAValue | int) -> None:
        k, matrix, tile = self.k, self.matrix, self.tile
        deep, row = k.add(k.mul(step, tile.lines), self.deep), k.add(self.first, self.row)
        whole_depth = isinstance(matrix.width, int) and matrix.width % tile.lines == 0
        whole_rows = isinstance(matrix.lines, int) and matrix.lines % tile.width == 0
        first = k.add(k.add(matrix.base, k.mul(row, matrix.outer)), deep)
        target = tile.at(k, stage, self.deep, self.row)
        for below in range(0, tile.width, self.step):
            start, apart = _moved(k, first, below, matrix.outer)
            exists = None if whole_rows else k.compare("slt", k.add(row, below), k.size(matrix.lines))
            for on in range(0, tile.lines, _SECTOR):
                inside = None if whole_depth else k.compare("slt", k.add(deep, on), k.size(matrix.width))
                both = k.both(exists, inside)
                valid = None if both is None else k.select(both, 1, 0)
                offsets = (apart + on, on * tile.pitch + below)
                k.insert(CopyAsyncOp(matrix.buffer, start, tile.buffer, target, 1, valid, offsets))


_SECTOR = 8
"""Elements of 4 bytes in what memory moves at once."""


def _moved(k: KernelBuilder, index: SSAValue, lines: int, step: SSAValue | int) -> tuple[SSAValue, int]:
    """An index so many steps on, as another index and how many elements it is still away."""
    if isinstance(step, int):
        return index, lines * step
    return k.add(index, k.mul(step, lines)), 0
