"""The pipeline between the producer thread and the consumer warpgroups: pipeline stages, and their barriers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.fragment import FillFragmentOp
from mlirt.dialects.kernel.simt import LARGEST_ALIGNMENT, SharedOp
from mlirt.dialects.kernel.transaction_barrier import (
    MbarrierArriveOp,
    MbarrierExpectOp,
    MbarrierFenceOp,
    MbarrierInitOp,
    MbarrierWaitOp,
)
from mlirt.dialects.kernel.warpgroup import (
    LINE,
    ROWS,
    WARPGROUP,
    WarpgroupAccumulatorsOp,
    WarpgroupMmaOp,
    WarpgroupWaitOp,
)
from mlirt.dialects.tensor_types import byte_width
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.warpgroups.group_tile import GroupTile
from mlirt.passes.lowering.warpgroups.kinds import Kind
from mlirt.passes.lowering.warpgroups.sources import Slot, Source

_STATE = ("stage", "parity")  # what the values of a state are called


@dataclass(frozen=True)
class PipelineState:
    """A stage, and the parity of the phase in which it is used."""

    stage: SSAValue
    parity: SSAValue

    def values(self) -> list[SSAValue]:
        return [self.stage, self.parity]


class Pipeline:
    """Shared memory for the stages. Copies fill a stage when it is `empty`, and make it `full`."""

    def __init__(self, k: KernelBuilder, tile: GroupTile, kind: Kind, left: Source, right: Source) -> None:
        self.k, self.tile, self.kind, self.left, self.right = k, tile, kind, left, right
        self.size = byte_width(kind.element)
        self.stage_bytes = tile.stage_bytes * kind.line // LINE
        self.stage = self.stage_bytes // self.size
        self.right_start = tile.rows * kind.line // self.size
        self.tiles = k.value(SharedOp(tile.stages * self.stage, kind.element, LARGEST_ALIGNMENT))
        self.full, self.empty = (k.value(SharedOp(tile.stages, i64)) for _ in range(2))
        for value, name in ((self.tiles, "tiles"), (self.full, "full"), (self.empty, "empty")):
            value.name_hint = name
        if tile.ping_pong:
            self.order = k.value(SharedOp(tile.consumers, i64))
            self.order.name_hint = "order"

    def initialise(self, thread: SSAValue, others: Callable[[], None]) -> None:
        """One thread makes the barriers, and `others`; they may be used after a barrier."""
        k = self.k

        def make(stage: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            k.insert(MbarrierInitOp(self.full, stage, 1))
            k.insert(MbarrierInitOp(self.empty, stage, self.tile.readers))
            return []

        def all_() -> None:
            k.loop(self.tile.stages, [], make, ["stage"])
            for group in range(self.tile.consumers if self.tile.ping_pong else 0):
                k.insert(MbarrierInitOp(self.order, k.constant(group), 1))
            others()
            k.insert(MbarrierFenceOp())

        k.when(k.compare("eq", thread, 0), all_)

    def start(self, parity: int) -> PipelineState:
        return PipelineState(self.k.constant(0), self.k.constant(parity))

    def next(self, state: PipelineState) -> PipelineState:
        """The stage after this one; behind the last one comes the first one with the other parity."""
        k = self.k
        following = k.named(k.add(state.stage, 1), "next_stage")
        wraps = k.named(k.compare("eq", following, self.tile.stages), "wraps")
        return PipelineState(
            k.select(wraps, 0, following), k.select(wraps, k.sub(k.constant(1), state.parity), state.parity)
        )

    def multiply_ping_pong(self, group: SSAValue, thread: SSAValue, steps: SSAValue, tile: SSAValue) -> SSAValue:
        """The accumulators of the `tile`-th tile of one of the warpgroups in ping-pong.

        A warpgroup begins when the one before has seen all stages of the tile before: barriers tell phases apart by
        parity, so that nobody may wait for the phase after the next one.
        """
        k, stages, groups = self.k, self.tile.stages, self.tile.consumers
        used = k.mul(k.add(k.mul(tile, groups), group), steps)
        start = PipelineState(k.rem(used, stages), k.rem(k.div(used, stages), 2))
        k.insert(MbarrierWaitOp(self.order, group, k.rem(k.add(k.add(tile, 1), k.min(group, 1)), 2)))
        following = k.rem(k.add(group, 1), groups)

        def let_next_begin() -> None:
            self._give_back(self.order, k.compare("eq", k.rem(thread, WARPGROUP), 0), following)

        return self.multiply(k.constant(0), thread, steps, start, let_next_begin)[0]

    def slot(self, stage: SSAValue, operand: Source) -> Slot:
        start = 0 if operand is self.left else self.right_start
        index = self.k.add(self.k.mul(stage, self.stage), start)
        return Slot(self.tiles, index, self.full, stage)

    def announce(self, stage: SSAValue) -> None:
        """Tell the stage's barrier how many bytes come."""
        self.k.insert(MbarrierExpectOp(self.full, stage, self.stage_bytes))

    def fill(self, first: SSAValue, steps: SSAValue, state: PipelineState) -> PipelineState:
        """Start the copies of all steps of a tile, each when its stage is empty."""
        k = self.k

        def step(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            state = PipelineState(carried[0], carried[1])
            k.insert(MbarrierWaitOp(self.empty, state.stage, state.parity))
            self.announce(state.stage)
            for operand in (self.left, self.right):
                operand.load(k, k.add(first, i), self.slot(state.stage, operand))
            return self.next(state).values()

        return PipelineState(*k.loop(steps, state.values(), step, ["step", *_STATE]))

    def multiply(
        self,
        group: SSAValue,
        thread: SSAValue,
        steps: SSAValue,
        state: PipelineState,
        when_begun: Callable[[], None] | None = None,
    ) -> tuple[SSAValue, PipelineState]:
        """The sums of a tile in this warpgroup. A stage is given back when the product after its own has begun.

        `when_begun` is done when the last product has begun.
        """
        k = self.k
        leads = k.named(k.compare("eq", k.rem(thread, WARPGROUP), 0), "leads")
        sums = k.value(FillFragmentOp(k.constant(0, self.kind.sums), self.tile.columns // 2))
        own = k.mul(group, ROWS * self.kind.line // self.size)

        def step(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            sums, previous, state = carried[0], carried[1], PipelineState(carried[2], carried[3])
            k.insert(MbarrierWaitOp(self.full, state.stage, state.parity))
            start = k.mul(state.stage, self.stage)
            sums = k.value(
                WarpgroupMmaOp(
                    self.kind.mma,
                    sums,
                    (self.tiles, k.add(start, own)),
                    (self.tiles, k.add(start, self.right_start)),
                    self.tile.columns,
                    line=self.kind.line,
                    left_by_depth=self.left.by_depth,
                    right_by_depth=self.right.by_depth,
                )
            )
            k.insert(WarpgroupWaitOp(1))
            leads_later = k.both(leads, k.compare("sgt", i, 0))
            assert leads_later is not None
            self._give_back(self.empty, leads_later, previous)
            return [sums, state.stage, *self.next(state).values()]

        names = ["step", "total", "previous", *_STATE]
        sums, last, *last_state = k.loop(steps, [sums, k.constant(0), *state.values()], step, names)
        if when_begun is not None:
            when_begun()
        sums = k.value(WarpgroupAccumulatorsOp(sums))
        self._give_back(self.empty, leads, last)
        return sums, PipelineState(*last_state)

    def _give_back(self, barriers: SSAValue, condition: SSAValue, number: SSAValue) -> None:
        """One thread tells a barrier."""

        def arrive() -> None:
            self.k.insert(MbarrierArriveOp(barriers, number))

        self.k.when(condition, arrive)
