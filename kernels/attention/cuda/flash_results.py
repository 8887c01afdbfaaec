"""The results of a block of attention on their way from accumulators to memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.accumulators import columns_of, rows_of
from mlirt.dialects.kernel.buffers import length
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.simt import BarrierOp, ReuseSharedOp
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.attention.cuda.flash_kernel import FlashKernel
from mlirt.kernels.attention.cuda.flash_tiles import batch_offset
from mlirt.kernels.attention.walks import Walk
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.cuda.tiles.tile_memory import TileMemory, accumulator_pitch
from mlirt.kernels.lib.tactics.lowering import Lowering


class ResultWriter:
    """Writes what a block has computed; the accumulators lie in shared memory in between, where rows are whole."""

    def __init__(self, flash: FlashKernel, op: AttentionOp, out: Walk, lowering: Lowering) -> None:
        self.k: KernelBuilder = flash.k
        self.flash, self.op, self.out = flash, op, out
        self.width = 16 * flash.column_steps
        columns = op.columns
        assert isinstance(columns, int)
        self.columns = columns
        self.wide = 1 if out.column != 1 else widest_access(op.output, [out.query, *out.batch, out.offset], lowering)
        while columns % self.wide:
            self.wide //= 2

    def write(self, results: SSAValue, first: SSAValue, batch: Sequence[SSAValue], thread: SSAValue) -> None:
        """`first` is the block's first query."""
        k, shape, kept = self.k, self.flash.flash_shape, self._kept(results)
        across = self.width // self.wide
        total = shape.queries * across
        base = batch_offset(k, batch, self.out)
        buffer = k.buffer(self.op.output, self.out.offset)

        def part(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            place = k.add(k.mul(number, shape.threads), thread)
            row, column = k.div(place, across), k.mul(k.rem(place, across), self.wide)
            query = k.add(first, row)
            exists = None if self._is_whole() else k.compare("slt", query, k.size(self.op.queries))
            if self.columns != self.width:
                exists = k.both(exists, k.compare("slt", column, self.columns))
            if total % shape.threads:
                exists = k.both(exists, k.compare("slt", row, shape.queries))

            def move() -> None:
                numbers = k.value(LoadFragmentOp(kept.buffer, kept.at(k, 0, row, column), range(self.wide), wide=True))
                at = k.add(
                    k.add(base, k.mul(query, k.stride(self.out.query))), k.mul(column, k.stride(self.out.column))
                )
                k.insert(StoreFragmentOp(self._rounded(numbers), buffer, at, range(self.wide), wide=True))

            if exists is None:
                move()
            else:
                k.when(exists, move)
            return []

        k.loop(-(-total // shape.threads), [], part)

    def _is_whole(self) -> bool:
        return isinstance(self.op.queries, int) and self.op.queries % self.flash.flash_shape.queries == 0

    def _kept(self, results: SSAValue) -> TileMemory:
        """The results in the place of keys and values, which nobody reads any more."""
        k, flash, count = self.k, self.flash, length(results)
        pitch, rows = accumulator_pitch(self.width), flash.flash_shape.queries
        buffer = k.value(ReuseSharedOp(flash.tiles.keys.buffer, rows * pitch, f32))
        buffer.name_hint = "kept"
        kept = TileMemory(buffer, 0, rows, self.width, pitch)
        own, columns = rows_of(count, flash.shape.rows), columns_of(count, flash.shape.rows)
        offsets = [8 * row * pitch + column for row, column in zip(own, columns, strict=True)]
        row = k.add(flash.first_row, k.div(flash.lane, 4))
        at = kept.at(k, 0, row, k.mul(k.rem(flash.lane, 4), 2))
        k.insert(StoreFragmentOp(results, buffer, at, offsets))
        k.insert(BarrierOp())
        return kept

    def _rounded(self, numbers: SSAValue) -> SSAValue:
        k, element = self.k, element_of(self.op.output.type)
        values = [k.value(FragmentElementOp(numbers, position)) for position in range(length(numbers))]
        return k.value(FragmentOp([k.scalars(element).cast(value, f32) for value in values]))
