"""A recurrent layer with the sequences of a batch in parallel, and the hidden units of a step as lanes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import Region, SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.tensor_types import dims
from mlirt.kernels.lib.language import Value, build, kernel
from mlirt.kernels.lib.language.words import (
    Elements,
    Tensor,
    cast,
    constant,
    extent,
    index_of,
    inline,
    parallel,
    place,
    static_range,
)
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.hidden_steps import steps_of

OPS = (RnnOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: RnnOp, lowering: Lowering) -> bool:
    k = lowering.kernel("rnn")
    build(k, _rnn, op)
    k.finish(op)
    return True


@kernel
def _rnn(op: RnnOp) -> None:
    """`for each sequence: for each step: for each hidden unit: sum over hidden; cell; keep the state`.

    The first state lives in its result; a step writes the outputs, and only then the state that all units have read.
    """
    steps, batch, _, size = dims(op.input.type)
    for n in parallel(batch):
        for unit in parallel(size):
            for initial, state in zip(op.initial, op.outputs[1:], strict=False):
                Elements(state)[n, unit] = Elements(initial)[n, unit]
        length = None if op.lengths is None else index_of(Elements(op.lengths)[n,])
        for step in range(extent(steps)):
            _step(op, n, place(step), length)


@kernel
def _step(op: RnnOp, n: Value, step: Value, length: Value | None) -> None:
    steps, size, gates = dims(op.input.type)[0], dims(op.input.type)[3], op.gates
    active, time = length is None or step < length, step
    if op.reverse.value.data:
        end = extent(steps) if length is None else min(length, extent(steps))
        back = end - 1 - step
        time = back if active else step
    outputs, *states = [Tensor(one, op.number_type) for one in op.outputs[: 1 + len(op.initial)]]
    layer = _Unit(op, n, time)
    if op.has_reset:
        for unit in parallel(size):
            accumulators = layer.accumulators(static_range(gates - 1), states[0], unit)
            (inner,) = layer.inlined(op.reset, [*accumulators, constant(0, op.number_type)], unit)
            Tensor(op.outputs[-1], op.number_type)[n, unit] = inner
    for unit in parallel(size):
        if op.has_reset:
            first = layer.accumulators(static_range(gates - 1), states[0], unit)
            last = layer.accumulators([gates - 1], Tensor(op.outputs[-1], op.number_type), unit)
            accumulators = [*first, *last]
        else:
            accumulators = layer.accumulators(static_range(gates), states[0], unit)
        output, *others = layer.inlined(op.cell, accumulators, unit)
        outputs[time, n, unit] = output if active else constant(0, op.number_type)
        for value, state in zip(others, states[1:], strict=True):
            state[n, unit] = value if active else state[n, unit]
    for unit in parallel(size):
        value = outputs[time, n, unit]
        states[0][n, unit] = value if active else states[0][n, unit]


@dataclass(frozen=True)
class _Unit:
    """The work for one hidden unit of sequence `n` at a time."""

    op: RnnOp
    n: Value
    time: Value

    def _numbers(self, value: SSAValue) -> Tensor:
        return Tensor(value, self.op.number_type)

    @kernel
    def accumulators(self, gates: Sequence[int], hidden: Tensor, unit: Value) -> list[Value]:
        """For some gates the products of a hidden vector with the unit's recurrent weights, on top of the bias."""
        op, recurrent = self.op, self._numbers(self.op.recurrent)
        if op.scale is not None:
            return self._sums_of_integers(hidden, unit)
        if op.bias is None:
            totals = [constant(0, op.number_type) for _ in gates]
        else:
            totals = [self._numbers(op.bias)[gate, unit] for gate in gates]
        for depth in range(extent(dims(op.input.type)[3])):
            value = hidden[self.n, depth]
            weights = [recurrent[depth, gate, unit] for gate in gates]
            totals = [total + value * one for total, one in zip(totals, weights, strict=True)]
        return totals

    @kernel
    def _sums_of_integers(self, hidden: Tensor, unit: Value) -> list[Value]:
        """As `accumulators`, of the hidden vector in whole steps with integers: float32 holds them exactly, or nearly
        so.
        """
        op, type_, units, gates = self.op, self.op.number_type, dims(self.op.input.type)[3], static_range(self.op.gates)
        assert op.scale is not None
        recurrent, scale = self._numbers(op.recurrent), self._numbers(op.scale)

        def load(depth: Value) -> Value:
            return cast(hidden[self.n, depth], type_, f32)

        steps = steps_of(units, load)
        totals = [constant(0, type_) for _ in gates]
        for depth in range(extent(units)):
            value = cast(steps.of_number(load(place(depth))), f32, type_)
            weights = [recurrent[depth, gate, unit] for gate in gates]
            totals = [total + value * one for total, one in zip(totals, weights, strict=True)]
        size, found = cast(steps.size, f32, type_), list[Value]()
        for gate, total in zip(gates, totals, strict=True):
            scaled = total * (size * scale[gate, unit])
            found = [*found, scaled if op.bias is None else scaled + self._numbers(op.bias)[gate, unit]]
        return found

    @kernel
    def inlined(self, region: Region, accumulators: Sequence[Value], unit: Value) -> tuple[Value, ...]:
        """A region of the op for this unit."""
        op = self.op
        x = [self._numbers(op.input)[self.time, self.n, gate, unit] for gate in static_range(op.gates)]
        states = [self._numbers(state)[self.n, unit] for state in op.outputs[1 : 1 + len(op.initial)]]
        extras = [self._numbers(extra)[unit,] for extra in op.extras]
        return inline(region, [*x, *accumulators, *states, *extras])
