"""A recurrent layer with the sequences of a batch in parallel, and the hidden units of a step as lanes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import f32
from xdsl.ir import Region, SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.hidden_steps import HiddenSteps

OPS = (RnnOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: RnnOp, lowering: Lowering) -> bool:
    """`parallel (batch) { for steps { parallel (hidden units) { sum over hidden; cell }; keep the state } }`.

    The first state lives in its result; a step writes the outputs, and only then the state that all units have read.
    """
    steps, batch, _, size = dims(op.input.type)
    k = lowering.kernel("rnn")
    with k.parallel([batch]) as (n,):
        with k.parallel([size]) as (unit,):
            for initial, state in zip(op.initial, op.outputs[1:], strict=False):
                k.store(k.load(initial, [n, unit]), state, [n, unit])
        length = None if op.lengths is None else k.from_integer(k.load(op.lengths, [n]))
        k.loop(steps, [], lambda step, _: _step(op, k, n, step, length))
    k.finish(op)
    return True


def _step(op: RnnOp, k: KernelBuilder, n: SSAValue, step: SSAValue, length: SSAValue | None) -> list[SSAValue]:
    steps, _, _, size = dims(op.input.type)
    gates = op.gates
    active = None if length is None else k.compare("slt", step, length)
    time = step
    if op.reverse.value.data:
        end = k.extent(steps) if length is None else k.min(length, k.extent(steps))
        back = k.sub(k.sub(end, 1), step)
        time = back if active is None else k.select(active, back, step)
    body = _Unit(op, k, n, time)
    states, outputs = op.outputs[1 : 1 + len(op.initial)], op.outputs[0]
    if op.has_reset:
        work = op.outputs[-1]
        with k.parallel([size]) as (unit,):
            accumulators = body.accumulators(range(gates - 1), states[0], unit)
            (inner,) = body.inline(op.reset, [*accumulators, k.constant(0, op.number_type)], unit)
            body.store(inner, work, [n, unit])
    with k.parallel([size]) as (unit,):
        if op.has_reset:
            accumulators = body.accumulators(range(gates - 1), states[0], unit) + body.accumulators(
                [gates - 1], op.outputs[-1], unit
            )
        else:
            accumulators = body.accumulators(range(gates), states[0], unit)
        new = body.inline(op.cell, accumulators, unit)
        zero = k.constant(0, op.number_type)
        body.store(new[0] if active is None else k.select(active, new[0], zero), outputs, [time, n, unit])
        for value, state in zip(new[1:], states[1:], strict=True):
            kept = value if active is None else k.select(active, value, body.load(state, [n, unit]))
            body.store(kept, state, [n, unit])
    with k.parallel([size]) as (unit,):
        value = body.load(outputs, [time, n, unit])
        kept = value if active is None else k.select(active, value, body.load(states[0], [n, unit]))
        body.store(kept, states[0], [n, unit])
    return []


class _Unit:
    """The work for one hidden unit of sequence `n` at a time."""

    def __init__(self, op: RnnOp, k: KernelBuilder, n: SSAValue, time: SSAValue) -> None:
        self.op, self.k, self.n, self.time = op, k, n, time

    def load(self, value: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        """An element as a number of the type that the cell computes in."""
        element = element_of(value.type)
        return self.k.scalars(self.op.number_type).cast(self.k.load(value, indices), element)

    def store(self, number: SSAValue, value: SSAValue, indices: Sequence[SSAValue]) -> None:
        element = element_of(value.type)
        self.k.store(self.k.scalars(element).cast(number, self.op.number_type), value, indices)

    def accumulators(self, gates: Sequence[int], hidden: SSAValue, unit: SSAValue) -> list[SSAValue]:
        """For some gates the products of a hidden vector with the unit's recurrent weights, on top of the bias."""
        k, op = self.k, self.op
        numbers = [k.constant(gate) for gate in gates]
        if op.scale is not None:
            return self._sums_of_integers(hidden, unit)
        if op.bias is None:
            start = [k.constant(0, op.number_type)] * len(numbers)
        else:
            start = [self.load(op.bias, [gate, unit]) for gate in numbers]

        def add(depth: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            value = self.load(hidden, [self.n, depth])
            s = k.scalars(op.number_type)
            weights = [self.load(op.recurrent, [depth, gate, unit]) for gate in numbers]
            return [s.add(total, s.mul(value, one)) for total, one in zip(carried, weights, strict=True)]

        return k.loop(dims(op.input.type)[3], start, add)

    def _sums_of_integers(self, hidden: SSAValue, unit: SSAValue) -> list[SSAValue]:
        """As `accumulators`, of the hidden vector in whole steps with integers: float32 holds them exactly, or nearly
        so.
        """
        k, op, units = self.k, self.op, dims(self.op.input.type)[3]
        assert op.scale is not None
        numbers = [k.constant(gate) for gate in range(op.gates)]

        def load(depth: SSAValue) -> SSAValue:
            return k.scalars(f32).cast(self.load(hidden, [self.n, depth]), op.number_type)

        def add(depth: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            s = k.scalars(op.number_type)
            value = s.cast(steps.of_number(load(depth)), f32)
            weights = [self.load(op.recurrent, [depth, gate, unit]) for gate in numbers]
            return [s.add(total, s.mul(value, one)) for total, one in zip(carried, weights, strict=True)]

        steps = HiddenSteps.of(k, units, load)
        totals = k.loop(units, [k.constant(0, op.number_type)] * len(numbers), add)
        s = k.scalars(op.number_type)
        size = s.cast(steps.size, f32)
        found: list[SSAValue] = []
        for total, gate in zip(totals, numbers, strict=True):
            scaled = s.mul(total, s.mul(size, self.load(op.scale, [gate, unit])))
            found.append(scaled if op.bias is None else s.add(scaled, self.load(op.bias, [gate, unit])))
        return found

    def inline(self, region: Region, accumulators: Sequence[SSAValue], unit: SSAValue) -> list[SSAValue]:
        """A region of the op for this unit."""
        k, op = self.k, self.op
        x = [self.load(op.input, [self.time, self.n, k.constant(gate), unit]) for gate in range(op.gates)]
        states = [self.load(state, [self.n, unit]) for state in op.outputs[1 : 1 + len(op.initial)]]
        extras = [self.load(extra, [unit]) for extra in op.extras]
        return k.inline(region, [*x, *accumulators, *states, *extras], [])
