"""The kernel of a product with weights of few bits: few rows read them once, more rows a panel of numbers."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.kernel.tile_packed import codes_per_word
from mlirt.dialects.kernel.worker import slots_for
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.language import Index, Value, build, kernel
from mlirt.kernels.lib.language.tile_words import (
    elements,
    fill,
    load_packed,
    multiply_add_packed,
    share,
    slot,
)
from mlirt.kernels.lib.language.words import ceil_div, constant, size, strided
from mlirt.kernels.lib.tactics.lowering import KernelBuilder
from mlirt.kernels.lib.tile import RegisterTile
from mlirt.kernels.matmul.cpu.product import Product
from mlirt.kernels.matmul.cpu.tile_kernel import Place, TileKernel, Vectors

FEW_ROWS = 4
"""So many rows at most multiply by weights that become numbers in registers, each row tile anew."""
_BYTES_DEEP = 8
"""Codes of 8 bits that are multiplied in one step."""


@dataclass(frozen=True)
class PackedPanels:
    """Codes `[panels, bytes, width]`, scales `[panels, blocks, width]`, zero points the same or `[width]`."""

    codes: SSAValue
    scale: SSAValue
    zero: SSAValue
    zero_is_one: bool
    bits: int
    block: int
    depth: int

    @property
    def step(self) -> int:
        """Codes of a column that are read at once."""
        return _BYTES_DEEP if self.bits == 8 else codes_per_word(self.bits)

    @property
    def blocks(self) -> int:
        return -(-self.depth // self.block)

    @property
    def row_bytes(self) -> int:
        """Bytes of a column of a panel: whole words."""
        count = self.blocks * self.block * self.bits // 8
        return count if self.bits == 8 else -(-count // 4) * 4


@dataclass(frozen=True)
class Codes:
    """Where the codes and the coefficients of a panel begin."""

    codes: Value
    scale: Value
    zero: Index


class PackedTileKernel(TileKernel):
    """With at most `FEW_ROWS` rows, known or of a run, each task is a panel; with more each worker makes numbers of a
    panel in its own part of `memory` first, and multiplies as with floats.
    """

    def __init__(
        self,
        k: KernelBuilder,
        op: PackedMatmulOp,
        product: Product,
        shape: RegisterTile,
        lanes: int,
        blocks: Dim,
        panels: PackedPanels,
    ) -> None:
        super().__init__(k, op, product, shape, lanes, blocks)
        self.source = panels

    def write_packed(self, memory: SSAValue | None) -> None:
        """The whole kernel; without memory for numbers every row multiplies by the codes."""
        build(self.k, self._either, memory)

    @kernel
    def _either(self, memory: SSAValue | None) -> None:
        rows = self.product.rows
        if memory is None:
            self._direct()
        elif isinstance(rows, int):
            self._by_numbers(memory)
        else:
            count = size("rows", rows)
            if count <= FEW_ROWS:
                self._direct()
            else:
                self._by_numbers(memory)

    # Few rows.

    @kernel
    def _direct(self) -> None:
        panels = self.panels
        for extent in self.product.batches:
            panels = panels * extent
        first, last = share(size("panels", panels))
        for pair in range(first, last):
            batches, panel = self._split(pair)
            self._rows_of_codes(self._codes(panel), Place(batches, 0, panel * self.width))

    @kernel
    def _rows_of_codes(self, codes: Codes, place: Place) -> None:
        rows = self.product.rows
        if isinstance(rows, int):
            self._tile_of_codes(rows, codes, place)
        else:
            row = 0
            for height in (4, 2, 1):
                end = row + (size("rows", rows) - row) // height * height
                for row in range(row, end, height):
                    self._tile_of_codes(height, codes, replace(place, row=row))
                row = end

    @kernel
    def _tile_of_codes(self, height: int, codes: Codes, place: Place) -> None:
        source, block = self.source, self.source.block
        *batches, row_step, _, step = self.steps(self.product.lhs)
        a_at = self.address([*place.batches, place.row], [*batches, row_step])
        accumulators = fill(constant(0.0, f32), height, self.shape.vectors, self.lanes)
        whole = source.depth // block
        for number in range(size("whole_blocks", whole)):
            for part in range(size("steps_per_block", block // source.step)):
                k = number * size("block", block) + part * source.step
                accumulators = self._add(accumulators, a_at + k * step, (row_step, step), codes, number, k, source.step)
            if block % source.step != 0:
                k = number * size("block", block) + block // source.step * source.step
                accumulators = self._add(
                    accumulators, a_at + k * step, (row_step, step), codes, number, k, block % source.step
                )
        rest = source.depth - whole * block
        if rest >= source.step:
            for part in range(size("last_steps", rest // source.step)):
                k = whole * block + part * source.step
                accumulators = self._add(accumulators, a_at + k * step, (row_step, step), codes, whole, k, source.step)
        if rest % source.step != 0:
            k = whole * block + rest // source.step * source.step
            accumulators = self._add(
                accumulators, a_at + k * step, (row_step, step), codes, whole, k, rest % source.step
            )
        self.either_edge(place.column, lambda valid: self.finish(accumulators, valid, place))

    @kernel
    def _add(
        self,
        accumulators: Value,
        at: Value,
        steps: tuple[Index, Index],
        codes: Codes,
        number: Index,
        k: Index,
        count: int,
    ) -> Value:
        weights = self._weights(codes, number, k)
        return multiply_add_packed(accumulators, self.lhs, at, steps, weights, self.source.bits, count)

    # More rows.

    @kernel
    def _by_numbers(self, memory: SSAValue) -> None:
        pairs = self.panels
        for extent in self.product.batches:
            pairs = pairs * extent
        tasks = size("tasks", pairs * self.blocks)
        first, last = share(tasks)
        own = slot(tasks, size("slots", slots_for(pairs * self.blocks)))
        if first < last:  # a worker without tasks has no memory for numbers
            blocks = size("blocks", self.blocks)
            for pair in range(first // blocks, ceil_div(last, blocks)):
                batches, panel = self._split(pair)
                numbers_at = own * size("panel_size", self.product.depth * self.width)
                vectors = Vectors(memory, numbers_at, self.width)
                self._make_numbers(vectors, self._codes(panel))
                before = pair * blocks
                tiles = size("tiles_per_block", ceil_div(self.row_tiles, self.blocks))
                low = max(first - before, 0) * tiles
                high = min(min(last - before, blocks) * tiles, size("row_tiles", self.row_tiles))
                self._rows(low, high, vectors, Place(batches, 0, panel * self.width))

    @kernel
    def _make_numbers(self, vectors: Vectors, codes: Codes) -> None:
        source, block = self.source, self.source.block
        whole = source.depth // block
        for number in range(size("whole_blocks", whole)):
            for part in range(size("steps_per_block", block // source.step)):
                self._keep(vectors, codes, number, number * size("block", block) + part * source.step, source.step)
            if block % source.step != 0:
                k = number * size("block", block) + block // source.step * source.step
                self._keep(vectors, codes, number, k, block % source.step)
        rest = source.depth - whole * block
        if rest >= source.step:
            for part in range(size("last_steps", rest // source.step)):
                self._keep(vectors, codes, whole, whole * block + part * source.step, source.step)
        if rest % source.step != 0:
            self._keep(vectors, codes, whole, whole * block + rest // source.step * source.step, rest % source.step)

    @kernel
    def _keep(self, vectors: Vectors, codes: Codes, number: Index, k: Index, count: int) -> None:
        """The numbers of some steps of the sum into the panel."""
        weights = self._weights(codes, number, k)
        tile = load_packed(*weights, self.source.bits, (count, self.shape.vectors, self.lanes))
        to = vectors.at + k * self.width
        memory = strided(vectors.buffer, 1, self.width, self.lanes, 1)
        for element, row, vector, lane in elements(tile):
            memory[to, row, vector, lane] = element

    # Where codes and coefficients lie.

    @kernel
    def _codes(self, panel: Index) -> Codes:
        source = self.source
        codes = panel * size("panel_bytes", source.row_bytes * self.width)
        scale = panel * size("panel_scales", source.blocks * self.width)
        return Codes(codes, scale, 0 if source.zero_is_one else scale)

    @kernel
    def _weights(self, codes: Codes, number: Index, k: Index):
        source = self.source
        at = codes.codes + k * (self.width * source.bits // 8)
        scale_at = codes.scale + number * self.width
        zero_at = codes.zero if source.zero_is_one else scale_at
        return (source.codes, at), (source.scale, scale_at), (source.zero, zero_at)
