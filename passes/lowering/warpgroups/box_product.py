"""Convolutions whose warpgroups find the pixels of all positions of a window in TMA boxes that were copied once."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerAttr, StringAttr, UnitAttr, i64
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.kernel.cluster import LaunchDependentsOp, WaitDependencyOp
from mlirt.dialects.kernel.core import YieldOp
from mlirt.dialects.kernel.fragment import FillFragmentOp
from mlirt.dialects.kernel.simt import WARP, BarrierOp, BlockIdOp
from mlirt.dialects.kernel.transaction_barrier import (
    MbarrierExpectOp,
    MbarrierWaitOp,
)
from mlirt.dialects.kernel.warpgroup import (
    WARPGROUP,
    WarpgroupAccumulatorsOp,
    WarpgroupMmaOp,
    WarpValueOp,
)
from mlirt.dialects.kernel.warpgroup_turns import EachWarpgroupOp
from mlirt.dialects.symbolic import Dim, minimum
from mlirt.dialects.target import HOPPER
from mlirt.passes.lowering.warpgroups.box_stages import BoxStages
from mlirt.passes.lowering.warpgroups.group_product import fits_narrow
from mlirt.passes.lowering.warpgroups.group_sizes import Work
from mlirt.passes.lowering.warpgroups.pixel_boxes import PixelBox
from mlirt.passes.lowering.warpgroups.sources import Slot

_FEW_TAPS = 16  # that are not a loop, so that their places are numbers in the code


class BoxProduct(BoxStages):
    """One kernel under construction."""

    def build(self, layer: Operation) -> None:
        """Write the kernel and launch it before `layer`."""
        k, tile = self.k, self.tile
        self._initialise()
        k.insert(BarrierOp())
        processors = k.lowering.target.gpu.processors
        blocks: Dim = minimum(self.rows.tiles, max(1, processors // self.across))
        k.function.attributes["dependent_launch"] = UnitAttr()
        k.insert(LaunchDependentsOp())
        self._share(k.value(BlockIdOp(0)), k.size(blocks))
        group = k.value(WarpValueOp(k.div(self.thread, WARPGROUP)))
        group.name_hint = "group"
        k.either(k.compare("sge", group, tile.groups), self._produce, lambda: self._consume(group))
        k.function.attributes["architecture"] = StringAttr(HOPPER)
        if fits_narrow(k, layer, self.rows.tiles * self.boxes.lines * self.line * self.across):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        k.finish(layer, grid=(blocks * self.across, 1, 1), block=[tile.threads])

    # The threads that start copies.

    def _produce(self) -> None:
        """A thread for each warpgroup: one alone takes longer to start a copy than a warpgroup to use it."""
        k, tile = self.k, self.tile
        first = k.sub(self.thread, tile.groups * WARPGROUP)
        group = k.named(k.value(WarpValueOp(k.div(first, WARP))), "group")

        def one(own: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            self._fill(group, own)
            return []

        def all_() -> None:
            k.when(k.compare("eq", group, 0), self._fill_known)
            k.insert(WaitDependencyOp())
            k.loop(self._own_turns(group), [], one, ["own"])

        each = EachWarpgroupOp(threads=WARP)
        with k.inside(each.body.block):
            k.when(k.compare("eq", k.rem(first, WARP), 0), all_)
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)

    def _own_turns(self, group: SSAValue) -> SSAValue:
        """Tiles of a warpgroup."""
        k = self.k
        return k.ceil_div(k.max(k.sub(self.count, group), 0), self.tile.groups)

    def _fill_known(self) -> None:
        """Start to copy the weights."""
        k = self.k
        k.insert(MbarrierExpectOp(self.ready, k.constant(0), self.steps * self.tile.columns * self.kind.line))
        self.weights.start_tile(k, self.column, [])

        def step(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            self.weights.load(k, i, Slot(self.known, k.mul(i, self.step), self.ready, k.constant(0)))
            return []

        k.loop(self.steps, [], step, ["step"])

    # The warpgroups that multiply.

    def _consume(self, group: SSAValue) -> None:
        k = self.k
        k.insert(WaitDependencyOp())
        self.results.prepare(self.thread, self.column)
        k.insert(MbarrierWaitOp(self.ready, k.constant(0), k.constant(0)))

        def own(i: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            turn = self._turn(group, i)
            work = Work(self._number(turn), self.column, k.constant(0))
            pieces = self.results.begin(self.thread, k.constant(0), work, turn)
            self.results.write(self._multiply(group, i), pieces)
            return []

        each = EachWarpgroupOp()
        with k.inside(each.body.block):
            k.loop(self._own_turns(group), [], own, ["own"])
            k.insert(YieldOp(operands=[[]]))
        k.insert(each)

    def _multiply(self, group: SSAValue, own: SSAValue) -> SSAValue:
        """The sums of a warpgroup's own tile."""
        k, last = self.k, self.slabs - 1
        leads = k.named(k.compare("eq", k.rem(self.thread, WARPGROUP), 0), "leads")
        fill = k.value(FillFragmentOp(k.constant(0, self.kind.sums), self.tile.columns // 2))
        self._await_turn(group, own)

        def slab(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            stage, parity = self._place(group, own, i)
            k.insert(MbarrierWaitOp(self.full, stage, parity))
            sums, start, first = carried[0], k.mul(stage, self.slab), k.mul(i, len(self.boxes.taps))
            for box in self.boxes.boxes:
                sums, first = self._add_box(sums, box, start, first), k.add(first, len(list(box.taps)))
            self._end_turn(group, k.both(leads, k.compare("eq", i, last) if last else None))
            sums = k.value(WarpgroupAccumulatorsOp(sums))
            self._arrive(leads, self.empty, stage)
            return [sums]

        return k.loop(self.slabs, [fill], slab, ["slab", "total"])[0]

    def _await_turn(self, group: SSAValue, own: SSAValue) -> None:
        """Until the warpgroup before has begun all its products: it writes results while this one multiplies.

        Barriers tell phases apart by parity, so that nobody may wait for the phase after the next one.
        """
        if self.tile.ping_pong:
            k = self.k
            k.insert(MbarrierWaitOp(self.order, group, k.rem(k.add(k.add(own, 1), k.min(group, 1)), 2)))

    def _end_turn(self, group: SSAValue, leads: SSAValue | None) -> None:
        if self.tile.ping_pong and leads is not None:
            self._arrive(leads, self.order, self.k.rem(self.k.add(group, 1), self.tile.groups))

    def _add_box(self, sums: SSAValue, box: PixelBox, start: SSAValue, first: SSAValue) -> SSAValue:
        """The sums with what the positions of the window find in a box; their weights begin at step `first`."""
        if len(self.boxes.taps) <= _FEW_TAPS:
            for number in map(self.k.constant, range(len(list(box.taps)))):
                sums = self._add_tap(sums, box, start, number, self.k.add(first, number))
            return sums

        def tap(i: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            return [self._add_tap(carried[0], box, start, i, self.k.add(first, i))]

        return self.k.loop(len(list(box.taps)), [sums], tap, ["tap", "total"])[0]

    def _add_tap(self, sums: SSAValue, box: PixelBox, start: SSAValue, number: SSAValue, kept: SSAValue) -> SSAValue:
        """The sums with a position's product; its weights are the ones number `kept` of those in shared memory."""
        k, across = self.k, len(box.across.taps)
        down, along = k.mul(k.div(number, across), box.down.step * self.boxes.pitch), k.rem(number, across)
        line = k.add(k.add(down, k.mul(along, box.across.step)), box.start)
        product = WarpgroupMmaOp(
            self.kind.mma,
            sums,
            (self.memory, k.add(start, k.mul(line, self.line))),
            (self.known, k.mul(kept, self.step)),
            self.tile.columns,
            line=self.kind.line,
            left_step=self.boxes.step,
        )
        return k.value(product)
