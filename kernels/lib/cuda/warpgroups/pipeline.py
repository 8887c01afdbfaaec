"""The pipeline between the producer thread and the consumer warpgroups: pipeline stages, and their barriers."""

from __future__ import annotations

from mlirt.dialects.kernel.simt import MAX_ALIGNMENT
from mlirt.dialects.kernel.warpgroup import LINE, ROWS, WARPGROUP
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.warpgroups.group_tile import GroupTile
from mlirt.kernels.lib.cuda.warpgroups.kinds import Kind
from mlirt.kernels.lib.cuda.warpgroups.sources import Slot, Source
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.hopper_words import (
    SharedTile,
    mbarriers,
    wgmma,
    wgmma_result,
    wgmma_wait,
)
from mlirt.kernels.lib.language.simt_words import shared_memory, zeros


class Pipeline:
    """A ring of stages in shared memory. Copies fill a stage when it is `empty`, and make it `full`.

    The pipeline state of a thread is the stage that it uses next, and the parity of the phase in which it uses it.
    """

    def __init__(self, k: KernelBuilder, tile: GroupTile, kind: Kind, sources: tuple[Source, Source]) -> None:
        self.k, self.tile, self.kind, self.sources = k, tile, kind, sources
        self.size = byte_width(kind.element)
        self.stage_bytes = tile.stage_bytes * kind.line // LINE
        self.stage = self.stage_bytes // self.size
        self.group_rows = ROWS * kind.line // self.size
        self.right_start = tile.rows * kind.line // self.size
        self.memory = shared_memory("tiles", tile.stages * self.stage, kind.element, MAX_ALIGNMENT)
        self.full, self.empty = mbarriers("full", tile.stages), mbarriers("empty", tile.stages)

    @kernel
    def initialise(self) -> None:
        """Make the barriers, in one thread."""
        for stage in range(self.tile.stages):
            self.full[stage].init(1)
            self.empty[stage].init(self.tile.readers)

    @kernel
    def advance(self, stage: Index, parity: Index) -> tuple[Index, Index]:
        """The stage after this one; behind the last one comes the first one with the other parity."""
        wraps = stage == self.tile.stages - 1
        return 0 if wraps else stage + 1, 1 - parity if wraps else parity

    @kernel
    def slot(self, stage: Index, operand: Source) -> Slot:
        """Where an operand's tile of a stage goes."""
        start = 0 if operand is self.sources[0] else self.right_start
        return Slot(SharedTile(self.memory, stage * self.stage + start), self.full[stage])

    @kernel
    def fill(self, first: Index, steps: Index, stage: Index, parity: Index) -> tuple[Index, Index]:
        """Start the copies of all steps of a tile, each when its stage is empty."""
        for step in range(steps):
            self.empty[stage].wait(parity)
            self.full[stage].expect(self.stage_bytes)
            for operand in self.sources:
                operand.load(first + step, self.slot(stage, operand))
            stage, parity = self.advance(stage, parity)
        return stage, parity

    @kernel
    def multiply(
        self, group: Index, leads: bool, steps: Index, stage: Index, parity: Index
    ) -> tuple[Value, Index, Index, Index]:
        """Start the products of a tile in this warpgroup: the accumulators, the last stage, and the next state.

        A stage is given back when the product after its own has begun, the last one by `finish`.
        """
        left, right = self.sources
        total = zeros(self.kind.accumulator_type, self.tile.columns // 2)
        previous = 0
        for step in range(steps):
            self.full[stage].wait(parity)
            a = SharedTile(self.memory, stage * self.stage + group * self.group_rows, left.by_depth)
            b = SharedTile(self.memory, stage * self.stage + self.right_start, right.by_depth)
            total = wgmma(self.kind.mma, total, a, b, self.tile.columns, self.kind.line)
            wgmma_wait(pending=1)
            if leads and step > 0:
                self.empty[previous].arrive()
            previous = stage
            stage, parity = self.advance(stage, parity)
        return total, previous, stage, parity

    @kernel
    def finish(self, total: Value, leads: bool, last: Index) -> Value:
        """The accumulators of a tile when all its products are done; the last stage is given back."""
        total = wgmma_result(total)
        if leads:
            self.empty[last].arrive()
        return total


@kernel
def leads_warpgroup(thread: Value) -> bool:
    """Whether a thread is the one that tells barriers for its warpgroup."""
    return thread % WARPGROUP == 0
