"""One hidden unit of one sequence in a thread of a GPU, which keeps its states in registers from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.words import (
    Elements,
    Tensor,
    cast,
    constant,
    extent,
    index_of,
    inline,
    place,
    static_range,
)
from mlirt.kernels.lib.tactics.lowering import Lowering


@dataclass(frozen=True)
class Place:
    """A step: which element of the sequence it is, and whether the sequence goes so far (`True`: all do)."""

    number: Value
    time: Value
    active: bool


@dataclass(frozen=True, eq=False)
class CellPosition:
    """Hidden unit `unit` of sequence `n`, whether that unit exists, and the nearest unit and sequence that do."""

    unit: Value
    n: Value
    is_unit: bool
    known: Value
    sequence: Value


@kernel
def position_of(op: RnnOp, unit: Value, n: Value, units: int, most: int) -> CellPosition:
    """A unit below `units` in a sequence below `most`, which are perhaps not below those that exist."""
    _, batch, _, size = dims(op.input.type)
    is_unit = units == size or unit < extent(size)
    known = unit if units == size else min(unit, extent(size) - 1)
    sequence = n if isinstance(batch, int) and most <= batch else min(n, extent(batch) - 1)
    return CellPosition(unit, n, is_unit, value_of(known), value_of(sequence))


@dataclass(frozen=True, eq=False)
class CellInRegisters:
    """The cell at a position: its initial states, and what stays the same in all steps.

    What does not exist computes what the last one does, and nothing of it is stored.
    """

    op: RnnOp
    at: CellPosition
    initial: list[Value]
    length: Value | None
    bias: list[Value]
    scale: list[Value]
    extras: list[Value]

    @kernel
    def place(self, number: Value) -> Place:
        """The step of a number; a sequence in reverse starts at its end."""
        steps, length = dims(self.op.input.type)[0], self.length
        active = True if length is None else number < length
        if not self.op.reverse.value.data:
            return Place(number, number, active)
        end = extent(steps) if length is None else min(length, extent(steps))
        back = end - 1 - number
        return Place(number, value_of(back if active else number), active)

    @kernel
    def inputs(self, number: Value) -> list[Value]:
        """What the input gives the gates in a step, in the precision of memory."""
        x, time, at = Elements(self.op.input), self.place(number).time, self.at
        return [x[time, at.sequence, gate, at.known] for gate in static_range(self.op.gates)]

    @kernel
    def first_inputs(self) -> list[Value]:
        """What the first step reads; zeros where sequences have no steps, and the input no elements."""
        op, at, first, steps = self.op, self.at, place(0), dims(self.op.input.type)[0]
        if isinstance(steps, int) and steps:
            return self.inputs(first)
        has_steps, time, found = first < extent(steps), self.place(first).time, list[Value]()
        for gate in static_range(op.gates):
            number = constant(0, element_of(op.input.type))
            if has_steps:
                number = Elements(op.input)[time, at.sequence, gate, at.known]
            found.append(number)
        return found

    @kernel
    def reset(self, loaded: Sequence[Value], accumulators: Sequence[Value], states: Sequence[Value]) -> Value:
        """What stands for the hidden state in the product of the last gate."""
        every = [*accumulators, constant(0, f32)]
        return inline(self.op.reset, [*self._wide(loaded), *every, *states, *self.extras])[0]

    @kernel
    def step(
        self, at: Place, loaded: Sequence[Value], accumulators: Sequence[Value], states: Sequence[Value]
    ) -> tuple[list[Value], Value]:
        """The states after a step, and what it puts out."""
        new = inline(self.op.cell, [*self._wide(loaded), *accumulators, *states, *self.extras])
        kept = [value_of(one if at.active else old) for one, old in zip(new, states, strict=True)]
        return kept, value_of(new[0] if at.active else 0.0)

    @kernel
    def scaled(self, accumulators: Sequence[Value], size: Value) -> list[Value]:
        """The products that pre-activations of all gates, of integers and steps of a size, stand for."""
        return [total * (size * scale) for total, scale in zip(accumulators, self.scale, strict=True)]

    @kernel
    def with_bias(self, accumulators: Sequence[Value], first: int = 0) -> list[Value]:
        """Pre-activations of the gates from `first` on, with their biases."""
        if not self.bias:
            return list(accumulators)
        return [total + self.bias[first + gate] for gate, total in enumerate(accumulators)]

    @kernel
    def put_out(self, at: Place, value: Value) -> None:
        """Store the output of a step."""
        if self.at.is_unit:
            Tensor(self.op.outputs[0])[at.time, self.at.n, self.at.unit] = value

    @kernel
    def put_states(self, states: Sequence[Value]) -> None:
        """Store the states after the last step."""
        if self.at.is_unit:
            for value, state in zip(states, self.op.outputs[1:], strict=False):
                Tensor(state)[self.at.n, self.at.unit] = value

    @kernel
    def sent(self, value: Value) -> Value:
        """A number for other cells; zero for units that do not exist, whose products must not matter."""
        return cast(value_of(value if self.at.is_unit else 0.0), f32, element_of(self.op.input.type))

    @kernel
    def _wide(self, loaded: Sequence[Value]) -> list[Value]:
        return [cast(one, element_of(self.op.input.type), f32) for one in loaded]


@kernel
def cell_at(op: RnnOp, at: CellPosition) -> CellInRegisters:
    """The cell at a position, with its initial states and what stays the same loaded."""
    gates = static_range(op.gates)
    initial = [Tensor(state)[at.sequence, at.known] for state in op.initial]
    length = None if op.lengths is None else index_of(Elements(op.lengths)[at.sequence,])
    bias = [] if op.bias is None else [Tensor(op.bias)[gate, at.known] for gate in gates]
    scale = [] if op.scale is None else [Tensor(op.scale)[gate, at.known] for gate in gates]
    extras = [Tensor(extra)[at.known,] for extra in op.extras]
    return CellInRegisters(op, at, initial, length, bias, scale, extras)


def fits_narrow(op: RnnOp, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    return lowering.fits_int32((*op.operands, *op.outputs))
