"""The results of a block of attention on their way from accumulators to memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.accumulators import columns_of, rows_of
from mlirt.dialects.kernel.buffers import length
from mlirt.dialects.layout import vector_width
from mlirt.kernels.attention.cuda.flash_kernel import FlashKernel
from mlirt.kernels.attention.cuda.flash_tiles import batch_offset
from mlirt.kernels.attention.results import finished_results
from mlirt.kernels.attention.walks import Walk
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory, accumulator_pitch
from mlirt.kernels.lib.language import Value, builder, kernel, value_of
from mlirt.kernels.lib.language.simt_words import Access, load_fragment, reuse_shared, store_fragment, sync_threads
from mlirt.kernels.lib.language.words import extent, stride
from mlirt.kernels.lib.tactics.lowering import Lowering


class ResultWriter:
    """Writes what a block has computed; the accumulators lie in shared memory in between, where rows are whole."""

    def __init__(self, flash: FlashKernel, op: AttentionOp, out: Walk, lowering: Lowering) -> None:
        self.flash, self.op, self.out = flash, op, out
        self.width = 16 * flash.column_steps
        columns = op.columns
        assert isinstance(columns, int)
        self.columns = columns
        wide = 1 if out.column != 1 else widest_access(op.output, [out.query, *out.batch, out.offset], lowering)
        self.wide = vector_width(wide, columns)
        self.access = Access(range(self.wide), wide=True)

    @kernel
    def write(self, results: Value, first: Value, batch: Sequence[Value], thread: Value) -> None:
        """`first` is the block's first query."""
        shape, kept = self.flash.flash_shape, self._kept(results)
        across = self.width // self.wide
        total = shape.queries * across
        base = batch_offset(batch, self.out)
        output = builder().buffer(self.op.output, self.out.offset)
        for number in range(-(-total // shape.threads)):
            place = number * shape.threads + thread
            row, column = place // across, place % across * self.wide
            query = first + row
            exists = self._is_whole() or query < extent(self.op.queries)
            if self.columns != self.width:
                exists = exists and column < self.columns
            if total % shape.threads:
                exists = exists and row < shape.queries
            if exists:
                numbers = load_fragment(kept.buffer, kept.at(0, row, column), self.access)
                at = base + query * stride(self.out.query) + column * stride(self.out.column)
                store_fragment(finished_results(self.op, value_of(numbers)), output, at, self.access)

    def _is_whole(self) -> bool:
        return isinstance(self.op.queries, int) and self.op.queries % self.flash.flash_shape.queries == 0

    @kernel
    def _kept(self, results: Value) -> TileMemory:
        """The results in the place of keys and values, which nobody reads any more."""
        flash, count = self.flash, length(results)
        pitch, rows = accumulator_pitch(self.width), flash.flash_shape.queries
        buffer = reuse_shared("kept", flash.tiles.keys.buffer, rows * pitch, f32)
        kept = TileMemory(buffer, 0, rows, self.width, pitch)
        own, columns = rows_of(count, flash.shape.warp_rows), columns_of(count, flash.shape.warp_rows)
        offsets = [8 * row * pitch + column for row, column in zip(own, columns, strict=True)]
        at = kept.at(0, flash.first_row + flash.lane // 4, flash.lane % 4 * 2)
        store_fragment(results, buffer, at, Access(offsets))
        sync_threads()
        return kept
