"""Recurrent layers on a CPU: each worker takes some sequences through all steps, their accumulators in register tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects.arith import SelectOp
from xdsl.dialects.builtin import Float32Type, IntegerAttr, UnitAttr, f32, i32, i64
from xdsl.ir import Region, SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.core import ParallelOp, YieldOp
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.kernel.tile_products import INT8_PRODUCTS
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cpu.products import Products, packed
from mlirt.kernels.rnn.cpu.scratch import Scratch
from mlirt.kernels.rnn.cpu.shape import RecurrentTile, tile_for
from mlirt.kernels.rnn.cpu.whole_steps import WholeSteps

OPS = (RnnOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 10


def lower(op: RnnOp, lowering: Lowering) -> bool:
    element = element_of(op.input.type)
    recurrent = lowering.constant_array(op.recurrent)
    if recurrent is None or op.number_type != f32 or not (is_half(element) or isinstance(element, Float32Type)):
        return False
    TiledLayer(op, lowering).write()
    return True


@dataclass(frozen=True)
class Place:
    """A hidden unit of sequence `n` in a step: which element of the sequence, and whether the sequence goes so far."""

    n: SSAValue
    unit: SSAValue
    time: SSAValue
    active: SSAValue | None


class TiledLayer:
    """`parallel (groups of sequences) { for steps { for panels { accumulators }; [for blocks { reset }; sums]; cells }
    }`.
    """

    def __init__(self, op: RnnOp, lowering: Lowering) -> None:
        self.op, self.lowering = op, lowering
        self.steps, self.batch, _, size = dims(op.input.type)
        assert isinstance(size, int)
        sequences = self.batch if isinstance(self.batch, int) else None
        self.gates = [op.gates - 1, 1] if op.has_reset else [op.gates]
        lanes = lowering.target.vector_bits // 32
        self.tiles = [tile_for(sequences, size, count, lanes, lowering.target.threads) for count in self.gates]
        rows = min(tile.rows for tile in self.tiles)
        self.tiles = [RecurrentTile(rows, tile.blocks, lanes, size) for tile in self.tiles]
        self.lanes, self.rows, self.units = lanes, rows, size
        self.k = lowering.kernel("rnn")
        self._sizes: dict[str, SSAValue] = {}
        self.whole: WholeSteps | None = None

    def write(self) -> None:
        op, k = self.op, self.k
        width = max(tile.width for tile in self.tiles)
        self.states = [self._scratch([self.batch, width], f"state_{number}") for number in range(len(op.initial))]
        self.work = self._scratch([self.batch, width], "work") if op.has_reset else None
        recurrent = self.lowering.constant_array(op.recurrent)
        if op.scale is not None and recurrent is not None:
            self.whole = WholeSteps(k, self.lowering, recurrent, self.batch, width)
        self.products = self._products()
        self.size("units", self.units)
        groups = ParallelOp([self.size("groups", ceil_div(self.batch, self.rows))])
        groups.attributes["workers"] = UnitAttr()
        (group,) = groups.body.block.args
        group.name_hint = "group"
        with k.inside(groups.body.block):
            first = k.mul(group, self.rows)
            first.name_hint = "first"
            rows = k.min(k.sub(self.size("batch", self.batch), first), self.rows)
            rows.name_hint = "rows"
            self._group(first, rows)
            k.insert(YieldOp(operands=[[]]))
        k.insert(groups)
        if self.whole is not None and self.whole.word > 1:
            need_features(k.function, INT8_PRODUCTS & self.lowering.target.special)
        k.finish(op)
        launch = op.prev_op
        assert isinstance(launch, LaunchOp)
        if not isinstance(self.batch, int) or -(-self.batch // self.rows) < self.lowering.target.threads:
            launch.sequential = UnitAttr()

    def _products(self) -> list[Products]:
        recurrent = self.lowering.constant_array(self.op.recurrent)
        assert recurrent is not None
        found: list[Products] = []
        start, word = 0, 1 if self.whole is None else self.whole.word
        for tile, count in zip(self.tiles, self.gates, strict=True):
            weights = self.k.weights(packed(recurrent[:, start : start + count], tile, word), "recurrent")
            element = f32 if word == 1 else i32
            accumulators = Scratch.of(self.k, self.lowering, [self.batch, count, tile.width], "accumulators", element)
            found.append(Products(self.k, tile, weights, count, accumulators, self.batch, word))
            start += count
        return found

    def _scratch(self, shape: Sequence[Dim], name: str) -> Scratch:
        return Scratch.of(self.k, self.lowering, shape, name)

    def size(self, name: str, dim: Dim) -> SSAValue:
        """A size that is one argument of the kernel wherever it is used."""
        if name not in self._sizes:
            self._sizes[name] = self.k.size(dim)
            self._sizes[name].name_hint = name
        return self._sizes[name]

    def _group(self, first: SSAValue, rows: SSAValue) -> None:
        """All steps of some sequences."""
        op, k = self.op, self.k

        def start(n: SSAValue, unit: SSAValue) -> None:
            for initial, state in zip(op.initial, self.states, strict=True):
                state.store(self._load(initial, [n, unit]), [n, unit])

        def end(n: SSAValue, unit: SSAValue) -> None:
            for state, output in zip(self.states, op.outputs[1:], strict=False):
                self._store(state.load([n, unit]), output, [n, unit])

        self._units(first, rows, start)
        k.loop(self.size("steps", self.steps), [], lambda step, _: self._step(step, first, rows))
        self._units(first, rows, end)

    def _step(self, step: SSAValue, first: SSAValue, rows: SSAValue) -> list[SSAValue]:
        op = self.op
        step.name_hint = "step"
        if self.whole is not None:
            self._round(self.whole, first, rows)
        self.products[0].multiply(self.states[0] if self.whole is None else self.whole.memory, first, rows)
        if self.work is not None:
            work = self.work

            def reset(place: Place) -> None:
                accumulators = [*self._accumulators(0, place), self.k.constant(0, f32)]
                (inner,) = self._inline(op.reset, accumulators, place)
                work.store(inner, [place.n, place.unit])

            self._cells(step, first, rows, reset)
            self.products[1].multiply(work, first, rows)
        self._cells(step, first, rows, self._cell)
        return []

    def _round(self, whole: WholeSteps, first: SSAValue, rows: SSAValue) -> None:
        """The hidden states of some sequences in whole steps."""
        k = self.k

        def row(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            n = k.add(first, number)
            n.name_hint = "n"
            whole.round(self.states[0], n, self.size("units", self.units), self.lanes, self._lanes)
            return []

        k.loop(rows, [], row)

    def _cell(self, place: Place) -> None:
        op, k = self.op, self.k
        n, unit, active = place.n, place.unit, place.active
        accumulators = [one for part in range(len(self.gates)) for one in self._accumulators(part, place)]
        new = self._inline(op.cell, accumulators, place)
        out = new[0]
        if active is not None:
            old = [state.load([n, unit]) for state in self.states]
            out = k.value(SelectOp(active, out, k.constant(0, f32)))
            new = [k.value(SelectOp(active, one, before)) for one, before in zip(new, old, strict=True)]
        self._store(out, op.outputs[0], [place.time, n, unit])
        for value, state in zip(new, self.states, strict=True):
            state.store(value, [n, unit])

    def _time(self, step: SSAValue, n: SSAValue) -> tuple[SSAValue, SSAValue | None]:
        """The element of the sequence in a step, and whether the sequence goes so far."""
        op, k = self.op, self.k
        length = None if op.lengths is None else k.from_integer(k.load(op.lengths, [n]))
        active = None if length is None else k.compare("slt", step, length)
        if not op.reverse.value.data:
            return step, active
        steps = self.size("steps", self.steps)
        end = steps if length is None else k.min(length, steps)
        back = k.sub(k.sub(end, 1), step)
        return (back if active is None else k.select(active, back, step)), active

    def _accumulators(self, part: int, place: Place) -> list[SSAValue]:
        """The pre-activations of the gates of one of the products for a hidden unit, on top of the bias."""
        op, k = self.op, self.k
        before = sum(self.gates[:part])
        found: list[SSAValue] = []
        for gate in range(self.gates[part]):
            total = self._sum(part, gate, place)
            if op.scale is not None and self.whole is not None:
                scale = self._load(op.scale, [k.constant(gate), place.unit])
                total = self.whole.real(total, scale, place.n, gate, place.unit)
            if op.bias is not None:
                bias = self._load(op.bias, [k.constant(before + gate), place.unit])
                total = k.scalars(f32).add(total, bias)
            found.append(total)
        return found

    def _sum(self, part: int, gate: int, place: Place) -> SSAValue:
        return self.products[part].accumulators.load([place.n, self.k.constant(gate), place.unit])

    def _inline(self, region: Region, accumulators: Sequence[SSAValue], place: Place) -> list[SSAValue]:
        op, k = self.op, self.k
        n, unit, time = place.n, place.unit, place.time
        x = [self._load(op.input, [time, n, k.constant(gate), unit]) for gate in range(op.gates)]
        states = [state.load([n, unit]) for state in self.states]
        extras = [self._load(extra, [unit]) for extra in op.extras]
        return k.inline(region, [*x, *accumulators, *states, *extras], [])

    # Loops over hidden units, which are lanes.

    def _units(self, first: SSAValue, rows: SSAValue, body: Callable[[SSAValue, SSAValue], None]) -> None:
        """`body(sequence, unit)` for some sequences."""

        def row(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            n = self.k.add(first, number)
            n.name_hint = "n"
            self._lanes(lambda unit: body(n, unit))
            return []

        self.k.loop(rows, [], row)

    def _cells(self, step: SSAValue, first: SSAValue, rows: SSAValue, body: Callable[[Place], None]) -> None:
        """`body` for all hidden units of some sequences in a step."""

        def row(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            n = self.k.add(first, number)
            n.name_hint = "n"
            time, active = self._time(step, n)
            self._lanes(lambda unit: body(Place(n, unit, time, active)))
            return []

        self.k.loop(rows, [], row)

    def _lanes(self, body: Callable[[SSAValue], None]) -> None:
        """`body(unit)` for all hidden units."""
        loop = ParallelOp([self.size("units", self.units)])
        loop.attributes["lanes"] = IntegerAttr(self.lanes, i64)
        (unit,) = loop.body.block.args
        unit.name_hint = "unit"
        with self.k.inside(loop.body.block):
            body(unit)
            self.k.insert(YieldOp(operands=[[]]))
        self.k.insert(loop)

    def _load(self, value: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        return self.k.scalars(f32).cast(self.k.load(value, indices), element_of(value.type))

    def _store(self, number: SSAValue, value: SSAValue, indices: Sequence[SSAValue]) -> None:
        self.k.store(self.k.scalars(element_of(value.type)).cast(number, f32), value, indices)
