"""One hidden unit of one sequence in a thread of a GPU, which keeps its states in registers from step to step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.dialects import scf
from xdsl.dialects.arith import SelectOp
from xdsl.dialects.builtin import f32
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.tactics.lowering import Lowering

_INDEX_LIMIT = 2**31


@dataclass(frozen=True)
class Place:
    """A step: which element of the sequence it is, and whether the sequence goes so far (None: all do)."""

    number: SSAValue
    time: SSAValue
    active: SSAValue | None


class CellInRegisters:
    """The cell of `unit` in sequence `n`, which are below `units` and `most`, but perhaps not below those that exist.

    What does not exist computes what the last one does, and nothing of it is stored.
    """

    def __init__(self, op: RnnOp, k: KernelBuilder, unit: SSAValue, n: SSAValue, units: int, most: int) -> None:
        self.op, self.k, self.unit, self.n = op, k, unit, n
        _, batch, _, size = dims(op.input.type)
        self.is_unit = None if units == size else k.compare("slt", unit, k.extent(size))
        self.known = unit if self.is_unit is None else k.min(unit, k.sub(k.extent(size), 1))
        self.sequence = n if isinstance(batch, int) and most <= batch else k.min(n, k.sub(k.extent(batch), 1))
        self.length: SSAValue | None = None
        self.bias: list[SSAValue] = []
        self.scale: list[SSAValue] = []
        self.extras: list[SSAValue] = []

    def begin(self) -> list[SSAValue]:
        """Load what stays the same in all steps; returns the initial states."""
        op, k = self.op, self.k
        states = [self.load(state, [self.sequence, self.known]) for state in op.initial]
        if op.lengths is not None:
            self.length = k.from_integer(k.load(op.lengths, [self.sequence]))
        if op.bias is not None:
            self.bias = [self.load(op.bias, [k.constant(gate), self.known]) for gate in range(op.gates)]
        if op.scale is not None:
            self.scale = [self.load(op.scale, [k.constant(gate), self.known]) for gate in range(op.gates)]
        self.extras = [self.load(extra, [self.known]) for extra in op.extras]
        return states

    def place(self, number: SSAValue) -> Place:
        """The step of a number; a sequence in reverse starts at its end."""
        k, steps, length = self.k, dims(self.op.input.type)[0], self.length
        active = None if length is None else k.compare("slt", number, length)
        if not self.op.reverse.value.data:
            return Place(number, number, active)
        end = k.extent(steps) if length is None else k.min(length, k.extent(steps))
        back = k.sub(k.sub(end, 1), number)
        return Place(number, back if active is None else k.select(active, back, number), active)

    def inputs(self, number: SSAValue) -> list[SSAValue]:
        """What the input gives the gates in a step, in the precision of memory."""
        op, k, time = self.op, self.k, self.place(number).time
        return [k.load(op.input, [time, self.sequence, k.constant(gate), self.known]) for gate in range(op.gates)]

    def first_inputs(self) -> list[SSAValue]:
        """What the first step reads; zeros where sequences have no steps, and the input no elements."""
        op, k = self.op, self.k
        steps, first = dims(op.input.type)[0], self.k.constant(0)
        if isinstance(steps, int) and steps:
            return self.inputs(first)
        has_steps, time = k.compare("slt", first, k.extent(steps)), self.place(first).time
        indices = [[time, self.sequence, k.constant(gate), self.known] for gate in range(op.gates)]
        zero = k.constant(0, element_of(op.input.type))
        return [k.guarded(has_steps, partial(k.load, op.input, one), zero) for one in indices]

    def reset(
        self, loaded: Sequence[SSAValue], accumulators: Sequence[SSAValue], states: Sequence[SSAValue]
    ) -> SSAValue:
        """What stands for the hidden state in the product of the last gate."""
        every = [*accumulators, self.k.constant(0, f32)]
        return self.k.inline(self.op.reset, [*self._wide(loaded), *every, *states, *self.extras], [])[0]

    def step(
        self, place: Place, loaded: Sequence[SSAValue], accumulators: Sequence[SSAValue], states: Sequence[SSAValue]
    ) -> tuple[list[SSAValue], SSAValue]:
        """The states after a step, and what it puts out."""
        k, active = self.k, place.active
        new = k.inline(self.op.cell, [*self._wide(loaded), *accumulators, *states, *self.extras], [])
        if active is None:
            return new, new[0]
        kept: list[SSAValue] = [k.value(SelectOp(active, one, old)) for one, old in zip(new, states, strict=True)]
        return kept, k.value(SelectOp(active, new[0], k.constant(0, f32)))

    def scaled(self, accumulators: Sequence[SSAValue], size: SSAValue) -> list[SSAValue]:
        """The products that pre-activations of all gates, of integers and steps of a size, stand for."""
        s = self.k.scalars(f32)
        return [s.mul(total, s.mul(size, scale)) for total, scale in zip(accumulators, self.scale, strict=True)]

    def with_bias(self, accumulators: Sequence[SSAValue], first: int = 0) -> list[SSAValue]:
        """Pre-activations of the gates from `first` on, with their biases."""
        s = self.k.scalars(f32)
        if not self.bias:
            return list(accumulators)
        return [s.add(total, self.bias[first + gate]) for gate, total in enumerate(accumulators)]

    def sent(self, value: SSAValue) -> SSAValue:
        """A number for other cells; zero for units that do not exist, whose products must not matter."""
        k = self.k
        if self.is_unit is not None:
            value = k.value(SelectOp(self.is_unit, value, k.constant(0, f32)))
        return k.scalars(element_of(self.op.input.type)).cast(value, f32)

    def put_out(self, place: Place, value: SSAValue) -> None:
        """Store the output of a step."""
        self.if_unit(lambda: self.store(value, self.op.outputs[0], [place.time, self.n, self.unit]))

    def put_states(self, states: Sequence[SSAValue]) -> None:
        """Store the states after the last step."""

        def store() -> None:
            for value, state in zip(states, self.op.outputs[1:], strict=False):
                self.store(value, state, [self.n, self.unit])

        self.if_unit(store)

    def if_unit(self, then: Callable[[], None]) -> None:
        """Do something for units that exist."""
        if self.is_unit is None:
            then()
        else:
            self.k.when(self.is_unit, then)

    def load(self, value: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        return self.k.scalars(f32).cast(self.k.load(value, indices), element_of(value.type))

    def store(self, number: SSAValue, value: SSAValue, indices: Sequence[SSAValue]) -> None:
        self.k.store(self.k.scalars(element_of(value.type)).cast(number, f32), value, indices)

    def _wide(self, loaded: Sequence[SSAValue]) -> list[SSAValue]:
        return [self.k.scalars(f32).cast(one, element_of(self.op.input.type)) for one in loaded]


def values_where(
    k: KernelBuilder, condition: SSAValue, then: Callable[[], Sequence[SSAValue]], otherwise: Sequence[SSAValue]
) -> list[SSAValue]:
    """What `then` gives in the threads where a condition holds."""
    yes, no = Block(), Block([scf.YieldOp(*otherwise)])
    with k.inside(yes):
        k.insert(scf.YieldOp(*then()))
    types = [value.type for value in otherwise]
    return list(k.insert(scf.IfOp(condition, types, Region(yes), Region(no))).results)


def fits_narrow(op: RnnOp, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    places = lowering.placements
    sizes: list[Dim] = [places.size_of(places[value].buffer) for value in (*op.operands, *op.outputs)]
    return all(isinstance(size, int) and size < _INDEX_LIMIT for size in sizes)
