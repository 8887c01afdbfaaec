"""Recurrent layers on a CPU: a worker takes some sequences through all steps, their accumulators in register tiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, UnitAttr, f32, i32
from xdsl.ir import Region

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.features import need_features
from mlirt.dialects.kernel.tile_products import INT8_PRODUCTS
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.symbolic import Dim, ceil_div
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.loops import RegionLoop
from mlirt.kernels.lib.language.tile_words import lane_loop, tasks
from mlirt.kernels.lib.language.words import Elements, Strided, Tensor, constant, index_of, inline, static_range
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cpu.products import Products, packed
from mlirt.kernels.rnn.cpu.scratch import scratch
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

    n: Value
    unit: Value
    time: Value
    active: bool


@dataclass(frozen=True, eq=False)
class Units:
    """`count` hidden units, of which so many are lanes of a vector."""

    count: Value
    width: int

    def lanes(self) -> RegionLoop[Value]:
        """Each of them, as a lane."""
        return lane_loop(self.count, self.width)


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
        self._sizes: dict[str, Value] = {}
        self.whole: WholeSteps | None = None

    def write(self) -> None:
        op, k = self.op, self.k
        width = max(tile.padded_units for tile in self.tiles)
        self.states = [self._scratch([self.batch, width], f"state_{number}") for number in range(len(op.initial))]
        self.work = self._scratch([self.batch, width], "work") if op.has_reset else None
        recurrent = self.lowering.constant_array(op.recurrent)
        if op.scale is not None and recurrent is not None:
            self.whole = WholeSteps(k, self.lowering, recurrent, self.batch, width)
        self.products = self._products()
        self.size("units", self.units)
        build(k, self._groups)
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
            shape = [self.batch, count, tile.padded_units]
            accumulators = scratch(self.k, self.lowering, shape, "accumulators", element)
            found.append(Products(self.k, tile, weights, count, accumulators, self.batch, word))
            start += count
        return found

    def _scratch(self, shape: Sequence[Dim], name: str) -> Strided:
        return scratch(self.k, self.lowering, shape, name)

    def size(self, name: str, dim: Dim) -> Value:
        """A size that is one argument of the kernel wherever it is used."""
        if name not in self._sizes:
            self._sizes[name] = self.k.size(dim)
            self._sizes[name].name_hint = name
        return self._sizes[name]

    @kernel
    def _groups(self) -> None:
        for group in tasks(self.size("groups", ceil_div(self.batch, self.rows))):
            first = group * self.rows
            rows = min(self.size("batch", self.batch) - first, self.rows)
            self._group(first, rows)

    @kernel
    def _group(self, first: Value, rows: Value) -> None:
        """All steps of some sequences."""
        units = self.all_units()
        for number in range(rows):
            self.start(first + number, units)
        for step in range(self.size("steps", self.steps)):
            self._step(value_of(step), first, rows, units)
        for number in range(rows):
            self.end(first + number, units)

    @kernel
    def start(self, n: Value, units: Units) -> None:
        """The initial states of a sequence."""
        for unit in units.lanes():
            for initial, state in zip(self.op.initial, self.states, strict=True):
                state[n, unit] = Tensor(initial)[n, unit]

    @kernel
    def end(self, n: Value, units: Units) -> None:
        """The states of a sequence after the last step, as they are put out."""
        for unit in units.lanes():
            for state, output in zip(self.states, self.op.outputs[1:], strict=False):
                Tensor(output)[n, unit] = state[n, unit]

    @kernel
    def _step(self, step: Value, first: Value, rows: Value, units: Units) -> None:
        hidden = self.states[0]
        if self.whole is not None:
            hidden = self.whole.memory
            for number in range(rows):
                self.whole.round(self.states[0], first + number, self.size("units", self.units), self.lanes)
        self.products[0].multiply(hidden, first, rows)
        if self.work is not None:
            self.reset(self.work, step, first, rows, units)
            self.products[1].multiply(self.work, first, rows)
        self.cells(step, first, rows, units)

    @kernel
    def reset(self, work: Strided, step: Value, first: Value, rows: Value, units: Units) -> None:
        """What stands for the hidden state in the second product, of some sequences."""
        for number in range(rows):
            n = first + number
            time, active = self._time(step, n)
            for unit in units.lanes():
                at = Place(n, unit, time, active)
                (work[n, unit],) = self._inline(self.op.reset, [*self._accumulators(0, at), constant(0, f32)], at)

    @kernel
    def cells(self, step: Value, first: Value, rows: Value, units: Units) -> None:
        """The states after a step, and what it puts out, of some sequences."""
        for number in range(rows):
            n = first + number
            time, active = self._time(step, n)
            for unit in units.lanes():
                self._cell(Place(n, unit, time, active))

    @kernel
    def _cell(self, at: Place) -> None:
        op, n, unit = self.op, at.n, at.unit
        accumulators = [one for part in range(len(self.gates)) for one in self._accumulators(part, at)]
        new = self._inline(op.cell, accumulators, at)
        out = new[0]
        if at.active is not True:
            before = [state[n, unit] for state in self.states]
            out = value_of(out if at.active else 0.0)
            new = [value_of(one if at.active else old) for one, old in zip(new, before, strict=True)]
        Tensor(op.outputs[0])[at.time, n, unit] = out
        for value, state in zip(new, self.states, strict=True):
            state[n, unit] = value

    @kernel
    def _time(self, step: Value, n: Value) -> tuple[Value, bool]:
        """The element of the sequence in a step, and whether the sequence goes so far."""
        op = self.op
        length = None if op.lengths is None else index_of(Elements(op.lengths)[n,])
        active = True if length is None else step < length
        if not op.reverse.value.data:
            return step, active
        steps = self.size("steps", self.steps)
        end = steps if length is None else min(length, steps)
        back = end - 1 - step
        return value_of(back if active else step), active

    @kernel
    def _accumulators(self, part: int, at: Place) -> list[Value]:
        """The pre-activations of the gates of one of the products for a hidden unit, on top of the bias."""
        op, before, found = self.op, sum(self.gates[:part]), list[Value]()
        for gate in static_range(self.gates[part]):
            total = self._sum(part, gate, at)
            if op.scale is not None and self.whole is not None:
                total = self.whole.real(total, Tensor(op.scale)[gate, at.unit], at.n, gate, at.unit)
            if op.bias is not None:
                total = total + Tensor(op.bias)[before + gate, at.unit]
            found.append(total)
        return found

    def _sum(self, part: int, gate: int, at: Place) -> Value:
        return self.products[part].accumulators[at.n, gate, at.unit]

    @kernel
    def _inline(self, region: Region, accumulators: Sequence[Value], at: Place) -> Sequence[Value]:
        op, n, unit = self.op, at.n, at.unit
        x = [Tensor(op.input)[at.time, n, gate, unit] for gate in range(op.gates)]
        states = [state[n, unit] for state in self.states]
        extras = [Tensor(extra)[unit,] for extra in op.extras]
        return inline(region, [*x, *accumulators, *states, *extras])

    def all_units(self) -> Units:
        """All hidden units."""
        return Units(self.size("units", self.units), self.lanes)
