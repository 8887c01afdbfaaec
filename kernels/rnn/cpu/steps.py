"""Recurrent layers with large weights on a CPU: all workers share each step, so that a core reads only its part."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import partial

from xdsl.dialects.builtin import Float32Type, f32, i1, i64
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.core import LoadOp, StoreOp
from mlirt.dialects.plan.control import WhileOp
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.symbolic import Dim, ceil_div, maximum, minimum
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.kernels.lib.cpu.split_index import split_index
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.loops import RegionLoop
from mlirt.kernels.lib.language.tile_words import lane_loop, tasks
from mlirt.kernels.lib.language.words import Tensor, clamp, place, strided
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cpu.products import Products, packed
from mlirt.kernels.rnn.cpu.scratch import Scratch, bytes_of
from mlirt.kernels.rnn.cpu.tiles import Place, TiledLayer

OPS = (RnnOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 11

# Smaller ones stay in the cache of each core, and more sequences than workers do not have to meet in each step.
_LARGE_BYTES = 1 << 20


def lower(op: RnnOp, lowering: Lowering) -> bool:
    element = element_of(op.input.type)
    recurrent = lowering.constant_array(op.recurrent)
    if recurrent is None or op.scale is not None or op.number_type != f32 or lowering.target.threads < 2:
        return False
    sequences = dims(op.input.type)[1]
    has_one_each = isinstance(sequences, int) and sequences >= lowering.target.threads
    is_large = recurrent.size * 4 >= _LARGE_BYTES
    if has_one_each or not is_large or not (is_half(element) or isinstance(element, Float32Type)):
        return False
    _Steps(op, lowering).write()
    return True


class _Steps(TiledLayer):
    """`start; while (more steps) { sums of panels [and reset]; [sums of panels and] cells }; end`, a launch each.

    A launch reads the number of the step where no launch of its kind writes it: the first kernel copies it, the second
    one advances it and says whether there is another step.
    """

    def write(self) -> None:
        self.buffers: dict[str, SSAValue] = {}
        self.span: tuple[Value, Value] | None = None
        self.counters = [self.lowering.placements.scratch(8) for _ in range(2)]
        self.more = self.lowering.placements.scratch(1)
        self._kernel(self._start)
        steps = Block()
        for write in (self._first, self._second):
            # They are taken out of the program, into the loop.
            launch = self._kernel(write)
            launch.detach()
            launch.location = self.op.location
            steps.add_op(launch)
        loop = WhileOp(self.more, 0, Region(Block()), Region(steps))
        loop.location = self.op.location
        block = self.op.parent
        assert block is not None
        block.insert_op_before(loop, self.op)
        self._kernel(self._end)

    def _kernel(self, write: Callable[[], None]) -> LaunchOp:
        """A launch of a new kernel."""
        self._sizes = {}
        width = max(tile.padded_units for tile in self.tiles)
        self.states = [self._scratch([self.batch, width], f"state_{number}") for number in range(len(self.op.initial))]
        self.work = self._scratch([self.batch, width], "work") if self.op.has_reset else None
        build(self.k, write)
        self.k.finish(self.op)
        self.k = self.lowering.kernel("rnn")
        launch = self.op.prev_op
        assert isinstance(launch, LaunchOp)
        return launch

    def _scratch(self, shape: Sequence[Dim], name: str) -> Scratch:
        if name not in self.buffers:
            self.buffers[name] = self.lowering.placements.scratch(bytes_of(shape))
        return Scratch.at_buffer(self.k, self.buffers[name], shape, name)

    def _product(self, part: int) -> Products:
        """The pre-activations of the gates of one of the products; only who multiplies needs the weights."""
        recurrent = self.lowering.constant_array(self.op.recurrent)
        assert recurrent is not None
        tile, count, start = self.tiles[part], self.gates[part], sum(self.gates[:part])
        weights = self.k.weights(packed(recurrent[:, start : start + count], tile), "recurrent")
        accumulators = self._scratch([self.batch, count, tile.padded_units], f"sums_{part}")
        return Products(self.k, tile, weights, count, accumulators, self.batch)

    # The kernels.

    @kernel
    def _start(self) -> None:
        """Initial states, and the first step."""
        for n in tasks(self.size("starts", maximum(self.batch, 1))):
            batch = self.size("batch", self.batch)
            if n < batch:
                for unit in self.unit_lanes():
                    for initial, state in zip(self.op.initial, self.states, strict=True):
                        state[n, unit] = Tensor(initial)[n, unit]
            if n == 0:
                some = 0 < self.size("steps", self.steps) and 0 < batch
                self._put(self.counters[0], place(0))
                strided(self.k.memory(self.more, i1))[()] = some

    @kernel
    def _first(self) -> None:
        products = self._product(0)
        with self._panels_of_groups(0) as (first, rows, panel):
            step = self._number_of_step(self.counters[0])
            if first == 0 and panel == 0:
                self._put(self.counters[1], step)
            products.multiply(self.states[0], first, rows, panel)
            if self.work is not None:
                self.reset(self.work, step, first, rows)

    @kernel
    def _second(self) -> None:
        last = len(self.gates) - 1
        products = self._product(last) if self.work is not None else None
        with self._panels_of_groups(last) as (first, rows, panel):
            step = self._number_of_step(self.counters[1])
            if first == 0 and panel == 0:
                following = step + 1
                self._put(self.counters[0], following)
                more = following < self.size("steps", self.steps)
                strided(self.k.memory(self.more, i1))[()] = more
            if products is not None and self.work is not None:
                products.multiply(self.work, first, rows, panel)
            self.cells(step, first, rows)

    @kernel
    def _end(self) -> None:
        for n in tasks(self.size("batch", self.batch)):
            for unit in self.unit_lanes():
                for state, output in zip(self.states, self.op.outputs[1:], strict=False):
                    Tensor(output)[n, unit] = state[n, unit]

    # What they consist of.

    def _sum(self, part: int, gate: int, at: Place) -> Value:
        shape = [self.batch, self.gates[part], self.tiles[part].padded_units]
        return self._scratch(shape, f"sums_{part}")[at.n, gate, at.unit]

    @contextmanager
    def _panels_of_groups(self, part: int) -> Generator[tuple[Value, Value, Value]]:
        """For each group of sequences and each panel of hidden units: the first sequence, how many, and the panel."""
        k, tile = self.k, self.tiles[part]
        # Without steps there is nothing to do, nor anything to read.
        groups = ceil_div(self.batch, self.rows) * minimum(self.steps, 1)
        extents = [self.size("groups", groups), self.size(f"panels_{part}", tile.panels)]
        units, batch = self.size("units", self.units), self.size("batch", self.batch)
        with tasks(*extents).enter() as (group, panel):
            first = k.mul(group, self.rows)
            rows = k.min(k.sub(batch, first), self.rows)
            start = k.mul(panel, tile.width(tile.lanes))
            self.span = (start, k.min(k.sub(units, start), tile.width(tile.lanes)))
            yield first, rows, panel
            self.span = None

    def unit_lanes(self) -> RegionLoop[Value]:
        """The hidden units of the panel, or all, which are lanes."""
        return super().unit_lanes() if self.span is None else RegionLoop(partial(self._lanes_of_panel, *self.span))

    @contextmanager
    def _lanes_of_panel(self, start: Value, count: Value) -> Generator[Value]:
        with lane_loop(count, self.lanes).enter() as unit:
            yield unit
        body = unit.owner
        assert isinstance(body, Block)
        for op in list(body.walk()):
            if isinstance(op, LoadOp | StoreOp) and unit in op.indices:
                split_index(op, start, unit)

    def _number_of_step(self, counter: SSAValue) -> Value:
        """The number of the step, which no memory can make one that there is not."""
        return clamp(self._get(counter), self.size("steps", self.steps))

    def _get(self, counter: SSAValue) -> Value:
        return self.k.from_integer(self.k.value(LoadOp(self.k.memory(counter, i64), [], [])))

    def _put(self, counter: SSAValue, number: SSAValue) -> None:
        self.k.insert(StoreOp(self.k.to_integer(number, i64), self.k.memory(counter, i64), [], []))
