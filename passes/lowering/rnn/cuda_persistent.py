"""All steps of a recurrent layer in one launch whose blocks keep the recurrent weights in registers.

Each block has eight hidden units. In a step it waits for the hidden state of all blocks, multiplies, computes the cells
of its units, and sends their hidden state to the others:

    for step { x <- input; hidden <- words; barrier; sums <- weights * hidden; barrier; cell; words <- new hidden }
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.dialects.arith import AndIOp, SelectOp
from xdsl.dialects.builtin import Float32Type, IntegerAttr, UnitAttr, f32, i64
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.core import StoreOp
from mlirt.dialects.kernel.simt import BarrierOp, BlockIdOp, ThreadIdOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.rnn.persistent_exchange import Exchange, new_words
from mlirt.passes.lowering.rnn.persistent_products import LaneProducts, MatrixUnitProducts
from mlirt.passes.lowering.rnn.persistent_shape import UNITS, PersistentShape, shapes_for
from mlirt.passes.lowering.rnn.persistent_weights import for_lanes, for_matrix_unit
from mlirt.passes.lowering.tiles.problem import is_half
from mlirt.passes.lowering.typical_sizes import typical, typical_values

OPS = (RnnOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_MOST_BLOCKS = 128  # that surely run at the same time, one on each multiprocessor
_MOST_GATES = 4
_MOST_SEQUENCES = 32
_INDEX_LIMIT = 2**31


def choices(op: Operation, lowering: Lowering) -> list[str]:
    assert isinstance(op, RnnOp)
    return [shape.name for shape in _shapes(op)]


def cost(op: Operation, lowering: Lowering, choice: str) -> float:
    assert isinstance(op, RnnOp)
    steps = typical(dims(op.input.type)[0], typical_values(lowering.block))
    (shape,) = (shape for shape in _shapes(op) if shape.name == choice)
    return shape.microseconds(steps)


def lower(op: Operation, lowering: Lowering) -> bool:
    assert isinstance(op, RnnOp)
    shape = next((shape for shape in _shapes(op) if shape.name == lowering.choice(op)), None)
    recurrent = lowering.constant_array(op.recurrent)
    if shape is None or recurrent is None:
        return False
    element = element_of(op.input.type)
    buffers = [new_words(lowering, op, shape, element) for _ in range(2 if op.has_reset else 1)]
    k = lowering.kernel("rnn")
    thread, block = k.value(ThreadIdOp()), k.value(BlockIdOp())
    thread.name_hint, block.name_hint = "thread", "block"
    if shape.half:
        packed = k.weights(for_matrix_unit(recurrent, shape), "recurrent")
        products = MatrixUnitProducts(k, shape, element, thread, block, packed)
    else:
        packed = k.weights(for_lanes(recurrent, shape), "recurrent")
        products = LaneProducts(k, shape, element, thread, block, packed)
    exchanges = [Exchange(k, shape, element, buffer, thread) for buffer in buffers]
    _Steps(op, k, shape, products, exchanges, thread, block).write()
    k.function.attributes["cooperative"] = UnitAttr()
    if _fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[shape.blocks, 1, 1], block=[shape.threads])
    return True


def _shapes(op: RnnOp) -> list[PersistentShape]:
    """The shapes that apply: none where sizes or weights are not known, or the layer is too large for the device."""
    _, batch, gates, size = dims(op.input.type)
    element = element_of(op.input.type)
    if not (is_half(element) or isinstance(element, Float32Type)) or op.number_type != f32:
        return []
    if not isinstance(batch, int) or not isinstance(size, int) or not isinstance(gates, int):
        return []
    is_small = gates <= _MOST_GATES and size <= UNITS * _MOST_BLOCKS and 0 < batch <= _MOST_SEQUENCES
    if not is_small or not isinstance(op.recurrent.owner, ConstantOp) or op.scale is not None:
        return []
    return shapes_for(gates, size, batch, is_half(element))


def _fits_narrow(op: RnnOp, lowering: Lowering) -> bool:
    """Whether 32-bit indices are enough: nothing that is touched has 2**31 bytes."""
    places = lowering.placements
    sizes: list[Dim] = [places.size_of(places[value].buffer) for value in (*op.operands, *op.outputs)]
    return all(isinstance(size, int) and size < _INDEX_LIMIT for size in sizes)


@dataclass(frozen=True)
class _Place:
    """A step: which element of the sequence, the stamp of the state before it, and whether the sequence goes so far."""

    time: SSAValue
    stamp: SSAValue
    active: SSAValue | None


class _Steps:
    """Thread `8 * n + u` has the cell of unit u of its block for sequence n; its states stay in registers."""

    def __init__(
        self,
        op: RnnOp,
        k: KernelBuilder,
        shape: PersistentShape,
        products: LaneProducts | MatrixUnitProducts,
        exchanges: Sequence[Exchange],
        thread: SSAValue,
        block: SSAValue,
    ) -> None:
        self.op, self.k, self.shape, self.products, self.exchanges = op, k, shape, products, exchanges
        self.thread = thread
        self.local, self.n = k.rem(thread, UNITS), k.div(thread, UNITS)
        self.unit = k.add(k.mul(block, UNITS), self.local)
        self.has_cell = k.compare("slt", thread, UNITS * shape.batch)
        self.is_unit = None if shape.units == shape.hidden else k.compare("slt", self.unit, shape.hidden)
        # Threads beyond the last unit compute what the last one does, and store nothing.
        self.known = self.unit if self.is_unit is None else k.min(self.unit, shape.hidden - 1)
        self.sequence = k.min(self.n, shape.batch - 1)

    def write(self) -> None:
        op, k = self.op, self.k
        hidden = [self.products.hidden_memory() for _ in self.exchanges]
        for one in hidden:
            self._clear(one)
        k.insert(BarrierOp())
        states = [self._load(state, [self.sequence, self.known]) for state in op.initial]
        k.when(self.has_cell, lambda: self._post(0, states[0], k.constant(1)))
        length = None if op.lengths is None else k.from_integer(k.load(op.lengths, [self.sequence]))
        bias = self._bias()
        extras = [self._load(extra, [self.known]) for extra in op.extras]
        steps = dims(op.input.type)[0]

        def step(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            x, states = carried[: op.gates], carried[op.gates :]
            active = None if length is None else k.compare("slt", number, length)
            place = _Place(self._time(number, length, active), k.add(number, 1), active)
            # What the next step reads is on its way while this one waits for the other blocks.
            later = k.min(k.add(number, 1), k.sub(k.extent(steps), 1))
            ahead = self._inputs(later, length)
            return [*ahead, *self._step(place, x, states, hidden, bias, extras)]

        last = k.loop(steps, [*self._inputs(k.constant(0), length), *states], step)[op.gates :]

        def store() -> None:
            for value, state in zip(last, op.outputs[1:], strict=False):
                self._store(value, state, [self.n, self.unit])

        self._when_stored(store)

    def _inputs(self, number: SSAValue, length: SSAValue | None) -> list[SSAValue]:
        """What the input gives the gates in a step, in the precision of memory."""
        op, k = self.op, self.k
        active = None if length is None else k.compare("slt", number, length)
        time = self._time(number, length, active)
        return [k.load(op.input, [time, self.sequence, k.constant(gate), self.known]) for gate in range(op.gates)]

    def _step(
        self,
        place: _Place,
        loaded: Sequence[SSAValue],
        states: list[SSAValue],
        hidden: Sequence[SSAValue],
        bias: Sequence[SSAValue],
        extras: Sequence[SSAValue],
    ) -> list[SSAValue]:
        op, k, element = self.op, self.k, element_of(self.op.input.type)
        self._products(0, place.stamp, hidden)

        def inputs() -> list[SSAValue]:
            return [k.scalars(f32).cast(one, element) for one in loaded]

        def reset() -> list[SSAValue]:
            sums = [*self._sums(range(op.gates - 1), bias), k.constant(0, f32)]
            self._post(1, k.inline(op.reset, [*inputs(), *sums, *states, *extras], [])[0], place.stamp)
            return sums[:-1]

        def cell(first: Sequence[SSAValue]) -> list[SSAValue]:
            sums = [*first, *self._sums(range(len(first), op.gates), bias)]
            new = k.inline(op.cell, [*inputs(), *sums, *states, *extras], [])
            return self._put(place, new, states)

        first: list[SSAValue] = []
        if op.has_reset:
            first = self._where_cells(reset, [k.constant(0, f32)] * (op.gates - 1))
            self._products(1, place.stamp, hidden)
        return self._where_cells(lambda: cell(first), states)

    def _put(self, place: _Place, new: Sequence[SSAValue], states: Sequence[SSAValue]) -> list[SSAValue]:
        """Send and store what a step gives; returns the states after it."""
        op, k, active = self.op, self.k, place.active
        kept, out = list(new), new[0]
        if active is not None:
            kept = [k.value(SelectOp(active, one, old)) for one, old in zip(new, states, strict=True)]
            out = k.value(SelectOp(active, out, k.constant(0, f32)))
        self._post(0, kept[0], k.add(place.stamp, 1))
        if self.is_unit is None:
            self._store(out, op.outputs[0], [place.time, self.n, self.unit])
        else:
            k.when(self.is_unit, lambda: self._store(out, op.outputs[0], [place.time, self.n, self.unit]))
        return kept

    def _products(self, which: int, stamp: SSAValue, hidden: Sequence[SSAValue]) -> None:
        """The sums of products with what the exchange `which` brings, ready for all threads."""
        self.exchanges[which].receive(stamp, hidden[which])
        self.k.insert(BarrierOp())
        self.products.multiply(hidden[which])
        self.k.insert(BarrierOp())

    def _where_cells(self, then: Callable[[], Sequence[SSAValue]], otherwise: Sequence[SSAValue]) -> list[SSAValue]:
        """What `then` gives in the threads that have a cell."""
        k, yes, no = self.k, Block(), Block([scf.YieldOp(*otherwise)])
        with k.inside(yes):
            k.insert(scf.YieldOp(*then()))
        types = [value.type for value in otherwise]
        return list(k.insert(scf.IfOp(self.has_cell, types, Region(yes), Region(no))).results)

    def _when_stored(self, then: Callable[[], None]) -> None:
        """Do something for units that exist."""
        stored = self.has_cell
        if self.is_unit is not None:
            stored = self.k.value(AndIOp(stored, self.is_unit))
        self.k.when(stored, then)

    def _time(self, number: SSAValue, length: SSAValue | None, active: SSAValue | None) -> SSAValue:
        k, steps = self.k, dims(self.op.input.type)[0]
        if not self.op.reverse.value.data:
            return number
        end = k.extent(steps) if length is None else k.min(length, k.extent(steps))
        back = k.sub(k.sub(end, 1), number)
        return back if active is None else k.select(active, back, number)

    def _sums(self, gates: range, bias: Sequence[SSAValue]) -> list[SSAValue]:
        s = self.k.scalars(f32)
        totals = [self.products.total(gate, self.local, self.sequence) for gate in gates]
        return [s.add(total, bias[gate]) for gate, total in zip(gates, totals, strict=True)] if bias else totals

    def _bias(self) -> list[SSAValue]:
        op, k = self.op, self.k
        if op.bias is None:
            return []
        return [self._load(op.bias, [k.constant(gate), self.known]) for gate in range(op.gates)]

    def _post(self, which: int, value: SSAValue, stamp: SSAValue) -> None:
        """Send a number; zero for units that do not exist, whose products must not matter."""
        k, element = self.k, element_of(self.op.input.type)
        if self.is_unit is not None:
            value = k.value(SelectOp(self.is_unit, value, k.constant(0, f32)))
        self.exchanges[which].post(k.scalars(element).cast(value, f32), stamp, self.sequence, self.unit)

    def _clear(self, hidden: SSAValue) -> None:
        k = self.k
        zero = k.constant(0, element_of(self.op.input.type))
        count = self.products.size // self.shape.threads

        def one(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            at = k.add(k.mul(number, self.shape.threads), self.thread)
            k.insert(StoreOp(zero, hidden, [at], [1]))
            return []

        k.loop(count, [], one)

    def _load(self, value: SSAValue, indices: Sequence[SSAValue]) -> SSAValue:
        element = element_of(value.type)
        return self.k.scalars(f32).cast(self.k.load(value, indices), element)

    def _store(self, number: SSAValue, value: SSAValue, indices: Sequence[SSAValue]) -> None:
        element = element_of(value.type)
        self.k.store(self.k.scalars(element).cast(number, f32), value, indices)
