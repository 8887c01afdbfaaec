"""Recurrent layers with large weights on a CPU: all workers share each step, so that a core reads only its part."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, f32, i1, i64
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.core import LoadOp, StoreOp
from mlirt.dialects.plan.control import WhileOp
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.symbolic import Dim, ceil_div, maximum, minimum
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.kernels.lib.cpu.split_index import split_index
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.loops import RegionLoop
from mlirt.kernels.lib.language.tile_words import tasks
from mlirt.kernels.lib.language.words import Strided, clamp, index_of, integer_of, strided
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cpu.products import Products, packed
from mlirt.kernels.rnn.cpu.scratch import bytes_of, scratch_in
from mlirt.kernels.rnn.cpu.tiles import Place, TiledLayer, Units

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

    def _scratch(self, shape: Sequence[Dim], name: str) -> Strided:
        if name not in self.buffers:
            self.buffers[name] = self.lowering.placements.scratch(bytes_of(shape))
        return scratch_in(self.k, self.buffers[name], shape, name)

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
                self.start(n, self.all_units())
            if n == 0:
                some = 0 < self.size("steps", self.steps) and 0 < batch
                self._counter(0)[()] = integer_of(0, i64)
                self._more()[()] = some

    @kernel
    def _first(self) -> None:
        products = self._product(0)
        for group, panel in tasks(*self._groups_and_panels(0)):
            first, rows, units = self._part(0, group, panel)
            step = self._number_of_step(0)
            if first == 0 and panel == 0:
                self._counter(1)[()] = integer_of(step, i64)
            products.multiply(self.states[0], first, rows, value_of(panel))
            if self.work is not None:
                self.reset(self.work, step, first, rows, units)

    @kernel
    def _second(self) -> None:
        last = len(self.gates) - 1
        products = self._product(last) if self.work is not None else None
        for group, panel in tasks(*self._groups_and_panels(last)):
            first, rows, units = self._part(last, group, panel)
            step = self._number_of_step(1)
            if first == 0 and panel == 0:
                following = step + 1
                self._counter(0)[()] = integer_of(following, i64)
                self._more()[()] = following < self.size("steps", self.steps)
            if products is not None and self.work is not None:
                products.multiply(self.work, first, rows, value_of(panel))
            self.cells(step, first, rows, units)

    @kernel
    def _end(self) -> None:
        for n in tasks(self.size("batch", self.batch)):
            self.end(n, self.all_units())

    # What they consist of.

    def _sum(self, part: int, gate: int, at: Place) -> Value:
        shape = [self.batch, self.gates[part], self.tiles[part].padded_units]
        return self._scratch(shape, f"sums_{part}")[at.n, gate, at.unit]

    def _groups_and_panels(self, part: int) -> list[Value]:
        """How many groups of sequences there are, and panels of hidden units; one task has one of each."""
        # Without steps there is nothing to do, nor anything to read.
        groups = ceil_div(self.batch, self.rows) * minimum(self.steps, 1)
        return [self.size("groups", groups), self.size(f"panels_{part}", self.tiles[part].panels)]

    @kernel
    def _part(self, part: int, group: Value, panel: Value) -> tuple[Value, Value, Units]:
        """The first sequence of a task, how many it has, and the hidden units of its panel."""
        units, batch, width = self.size("units", self.units), self.size("batch", self.batch), self._width(part)
        first = group * self.rows
        rows = value_of(min(batch - first, self.rows))
        start = panel * width
        return first, rows, _PanelUnits(value_of(min(units - start, width)), self.lanes, start)

    def _width(self, part: int) -> int:
        """Hidden units of a panel."""
        return self.tiles[part].width(self.tiles[part].lanes)

    @kernel
    def _number_of_step(self, counter: int) -> Value:
        """The number of the step, which no memory can make one that there is not."""
        return clamp(index_of(self._counter(counter)[()]), self.size("steps", self.steps))

    def _counter(self, number: int) -> Strided:
        """The number of the step, as one of the launches reads it."""
        return strided(self.k.memory(self.counters[number], i64))

    def _more(self) -> Strided:
        """Whether there is another step."""
        return strided(self.k.memory(self.more, i1))


@dataclass(frozen=True, eq=False)
class _PanelUnits(Units):
    """Those of a panel, from the hidden unit `start` on."""

    start: Value

    def lanes(self) -> RegionLoop[Value]:
        return RegionLoop(self._lanes)

    @contextmanager
    def _lanes(self) -> Generator[Value]:
        with super().lanes().enter() as unit:
            yield unit
        body = unit.owner
        assert isinstance(body, Block)
        for op in list(body.walk()):
            if isinstance(op, LoadOp | StoreOp) and unit in op.indices:
                split_index(op, self.start, unit)
