"""One hidden unit of one sequence in a thread of a GPU, which keeps its states in registers from step to step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.values import bool_of
from mlirt.kernels.lib.language.words import Tensor, cast, constant, extent, inline, place, static_range
from mlirt.kernels.lib.tactics.lowering import Lowering


@dataclass(frozen=True)
class Place:
    """A step: which element of the sequence it is, and whether the sequence goes so far (`True`: all do)."""

    number: Value
    time: Value
    active: bool


class CellInRegisters:
    """The cell of `unit` in sequence `n`, which are below `units` and `most`, but perhaps not below those that exist.

    What does not exist computes what the last one does, and nothing of it is stored.
    """

    def __init__(self, op: RnnOp, k: KernelBuilder, unit: Value, n: Value, units: int, most: int) -> None:
        self.op, self.k, self.unit, self.n = op, k, unit, n
        _, batch, _, size = dims(op.input.type)
        self.is_unit = units == size or bool_of(k.compare("slt", unit, k.extent(size)))
        self.known = unit if units == size else k.min(unit, k.sub(k.extent(size), 1))
        self.sequence = n if isinstance(batch, int) and most <= batch else k.min(n, k.sub(k.extent(batch), 1))
        self.length: Value | None = None
        self.bias: list[Value] = []
        self.scale: list[Value] = []
        self.extras: list[Value] = []

    def begin(self) -> list[Value]:
        """Load what stays the same in all steps; returns the initial states."""
        op, k = self.op, self.k
        states = [self._load(state, [self.sequence, self.known]) for state in op.initial]
        if op.lengths is not None:
            self.length = k.from_integer(k.load(op.lengths, [self.sequence]))
        if op.bias is not None:
            self.bias = [self._load(op.bias, [k.constant(gate), self.known]) for gate in range(op.gates)]
        if op.scale is not None:
            self.scale = [self._load(op.scale, [k.constant(gate), self.known]) for gate in range(op.gates)]
        self.extras = [self._load(extra, [self.known]) for extra in op.extras]
        return states

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

    def inputs(self, number: Value) -> list[Value]:
        """What the input gives the gates in a step, in the precision of memory."""
        op, k, time = self.op, self.k, self.place(number).time
        return [k.load(op.input, [time, self.sequence, k.constant(gate), self.known]) for gate in range(op.gates)]

    @kernel
    def first_inputs(self) -> list[Value]:
        """What the first step reads; zeros where sequences have no steps, and the input no elements."""
        op, first, steps = self.op, place(0), dims(self.op.input.type)[0]
        if isinstance(steps, int) and steps:
            return self.inputs(first)
        has_steps, time, found = first < extent(steps), self.place(first).time, list[Value]()
        for gate in static_range(op.gates):
            number = constant(0, element_of(op.input.type))
            if has_steps:
                number = self.k.load(op.input, [time, self.sequence, place(gate), self.known])
            found.append(number)
        return found

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
    def sent(self, value: Value) -> Value:
        """A number for other cells; zero for units that do not exist, whose products must not matter."""
        return cast(value_of(value if self.is_unit else 0.0), f32, element_of(self.op.input.type))

    @kernel
    def put_out(self, at: Place, value: Value) -> None:
        """Store the output of a step."""
        if self.is_unit:
            Tensor(self.op.outputs[0])[at.time, self.n, self.unit] = value

    @kernel
    def put_states(self, states: Sequence[Value]) -> None:
        """Store the states after the last step."""
        if self.is_unit:
            for value, state in zip(states, self.op.outputs[1:], strict=False):
                Tensor(state)[self.n, self.unit] = value

    def _load(self, value: SSAValue, indices: Sequence[SSAValue]) -> Value:
        return cast(self.k.load(value, indices), element_of(value.type), f32)

    def _wide(self, loaded: Sequence[Value]) -> list[Value]:
        return [cast(one, element_of(self.op.input.type), f32) for one in loaded]


def fits_narrow(op: RnnOp, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    return lowering.fits_int32((*op.operands, *op.outputs))
