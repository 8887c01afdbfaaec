"""Recurrent layers with large weights on a CPU: all workers share each step, so that a core reads only its part."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.arith import AndIOp
from xdsl.dialects.builtin import Float32Type, IntegerAttr, UnitAttr, f32, i1, i64
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, StoreOp, YieldOp
from mlirt.dialects.plan.control import WhileOp
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.symbolic import Dim, ceil_div, maximum, minimum
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.kernels.lib.cpu.split_index import split_index
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
        self.span: tuple[SSAValue, SSAValue] | None = None
        self.counters = [self.lowering.placements.scratch(8) for _ in range(2)]
        self.more = self.lowering.placements.scratch(1)
        self._kernel(self._start)
        steps = Block([self._kernel(self._first), self._kernel(self._second)])
        for launch in list(steps.ops):
            launch.location = self.op.location
        loop = WhileOp(self.more, 0, Region(Block()), Region(steps))
        loop.location = self.op.location
        block = self.op.parent
        assert block is not None
        block.insert_op_before(loop, self.op)
        self._kernel(self._end)

    def _kernel(self, write: Callable[[], None]) -> LaunchOp:
        """A launch of a new kernel; those of the steps are taken out of the program, into the loop."""
        self._sizes = {}
        width = max(tile.width for tile in self.tiles)
        self.states = [self._scratch([self.batch, width], f"state_{number}") for number in range(len(self.op.initial))]
        self.work = self._scratch([self.batch, width], "work") if self.op.has_reset else None
        write()
        self.k.finish(self.op)
        self.k = self.lowering.kernel("rnn")
        launch = self.op.prev_op
        assert isinstance(launch, LaunchOp)
        if write in (self._first, self._second):
            launch.detach()
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
        accumulators = self._scratch([self.batch, count, tile.width], f"sums_{part}")
        return Products(self.k, tile, weights, count, accumulators, self.batch)

    # The kernels.

    def _start(self) -> None:
        """Initial states, and the first step."""
        op, k = self.op, self.k
        with self._shared([self.size("starts", maximum(self.batch, 1))]) as (n,):

            def unit_of(unit: SSAValue) -> None:
                for initial, state in zip(op.initial, self.states, strict=True):
                    state.store(self._load(initial, [n, unit]), [n, unit])

            batch = self.size("batch", self.batch)
            k.when(k.compare("slt", n, batch), lambda: self._lanes(unit_of))

            def begin() -> None:
                some = k.value(AndIOp(k.compare("slt", 0, self.size("steps", self.steps)), k.compare("slt", 0, batch)))
                self._put(self.counters[0], k.constant(0))
                k.insert(StoreOp(some, k.memory(self.more, i1), [], []))

            k.when(k.compare("eq", n, 0), begin)

    def _first(self) -> None:
        products = self._product(0)
        with self._panels_of_groups(0) as (first, rows, panel):
            step = self._number_of_step(self.counters[0])
            self._once(first, panel, lambda: self._put(self.counters[1], step))
            products.multiply(self.states[0], first, rows, panel)
            if self.work is not None:
                self.products = [products]
                work = self.work

                def reset(place: Place) -> None:
                    accumulators = [*self._accumulators(0, place), self.k.constant(0, f32)]
                    (inner,) = self._inline(op.reset, accumulators, place)
                    work.store(inner, [place.n, place.unit])

                op = self.op
                self._cells(step, first, rows, reset)

    def _second(self) -> None:
        k, last = self.k, len(self.gates) - 1
        products = self._product(last) if self.work is not None else None
        with self._panels_of_groups(last) as (first, rows, panel):
            step = self._number_of_step(self.counters[1])

            def advance() -> None:
                following = k.add(step, 1)
                self._put(self.counters[0], following)
                more = k.compare("slt", following, self.size("steps", self.steps))
                k.insert(StoreOp(more, k.memory(self.more, i1), [], []))

            self._once(first, panel, advance)
            if products is not None and self.work is not None:
                products.multiply(self.work, first, rows, panel)
            self._cells(step, first, rows, self._cell)

    def _end(self) -> None:
        with self._shared([self.size("batch", self.batch)]) as (n,):

            def unit_of(unit: SSAValue) -> None:
                for state, output in zip(self.states, self.op.outputs[1:], strict=False):
                    self._store(state.load([n, unit]), output, [n, unit])

            self._lanes(unit_of)

    # What they consist of.

    def _sum(self, part: int, gate: int, place: Place) -> SSAValue:
        shape = [self.batch, self.gates[part], self.tiles[part].width]
        return self._scratch(shape, f"sums_{part}").load([place.n, self.k.constant(gate), place.unit])

    @contextmanager
    def _shared(self, extents: Sequence[SSAValue]) -> Generator[list[SSAValue]]:
        """Iterations that the workers share."""
        loop = ParallelOp(list(extents))
        loop.attributes["workers"] = UnitAttr()
        with self.k.inside(loop.body.block):
            yield list(loop.body.block.args)
            self.k.insert(YieldOp(operands=[[]]))
        self.k.insert(loop)

    @contextmanager
    def _panels_of_groups(self, part: int) -> Generator[tuple[SSAValue, SSAValue, SSAValue]]:
        """For each group of sequences and each panel of hidden units: the first sequence, how many, and the panel."""
        k, tile = self.k, self.tiles[part]
        # Without steps there is nothing to do, nor anything to read.
        groups = ceil_div(self.batch, self.rows) * minimum(self.steps, 1)
        extents = [self.size("groups", groups), self.size(f"panels_{part}", tile.panels)]
        units, batch = self.size("units", self.units), self.size("batch", self.batch)
        with self._shared(extents) as (group, panel):
            first = k.mul(group, self.rows)
            rows = k.min(k.sub(batch, first), self.rows)
            start = k.mul(panel, tile.blocks * tile.lanes)
            self.span = (start, k.min(k.sub(units, start), tile.blocks * tile.lanes))
            yield first, rows, panel
            self.span = None

    def _lanes(self, body: Callable[[SSAValue], None]) -> None:
        """`body(unit)` for the hidden units of the panel."""
        if self.span is None:
            super()._lanes(body)
            return
        start, count = self.span
        loop = ParallelOp([count])
        loop.attributes["lanes"] = IntegerAttr(self.lanes, i64)
        (unit,) = loop.body.block.args
        with self.k.inside(loop.body.block):
            body(unit)
            self.k.insert(YieldOp(operands=[[]]))
        for op in list(loop.body.block.walk()):
            if isinstance(op, LoadOp | StoreOp) and unit in op.indices:
                split_index(op, start, unit)
        self.k.insert(loop)

    def _once(self, first: SSAValue, panel: SSAValue, write: Callable[[], None]) -> None:
        """Let one iteration of all do something."""
        k = self.k
        k.when(k.value(AndIOp(k.compare("eq", first, 0), k.compare("eq", panel, 0))), write)

    def _number_of_step(self, counter: SSAValue) -> SSAValue:
        """The number of the step, which no memory can make one that there is not."""
        return self.k.clamp(self._get(counter), self.size("steps", self.steps))

    def _get(self, counter: SSAValue) -> SSAValue:
        return self.k.from_integer(self.k.value(LoadOp(self.k.memory(counter, i64), [], [])))

    def _put(self, counter: SSAValue, number: SSAValue) -> None:
        self.k.insert(StoreOp(self.k.to_integer(number, i64), self.k.memory(counter, i64), [], []))
