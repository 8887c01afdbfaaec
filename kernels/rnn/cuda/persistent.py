"""Persistent kernels for recurrent layers: all steps in one launch, the recurrent weights in the blocks' registers.

Each block has eight hidden units. In a step it waits for the hidden state of all blocks, multiplies, computes the cells
of its units, and sends their hidden state to the others:

    for step { x <- input; hidden <- words; barrier; accumulators <- weights * hidden; barrier; cell; words <- new
    hidden }

Where there are more sequences than the blocks have threads and registers for, or nobody knows how many, all of this is
done for some of them after the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import Float32Type, IntegerAttr, UnitAttr, f32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.core import StoreOp
from mlirt.dialects.kernel.simt import BarrierOp, BlockIdOp, ThreadIdOp
from mlirt.dialects.symbolic import ceil_div
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import build, value_of
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cuda.cell_in_registers import CellInRegisters, Place, fits_narrow, values_where
from mlirt.kernels.rnn.cuda.persistent_exchange import Exchange, new_words
from mlirt.kernels.rnn.cuda.persistent_products import LaneProducts, MatrixUnitProducts
from mlirt.kernels.rnn.cuda.persistent_shape import UNITS, PersistentShape, shapes_for
from mlirt.kernels.rnn.cuda.persistent_steps import put_in_steps
from mlirt.kernels.rnn.cuda.persistent_weights import for_lanes, for_matrix_unit

OPS = (RnnOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_MAX_BLOCKS = 128  # that have to run at the same time, one on each multiprocessor
_MAX_GATES = 4
_MAX_SEQUENCES = 32  # at once
_ANY = 1 << 31  # more sequences than there are


def estimates(op: RnnOp, lowering: Lowering) -> Mapping[str, float]:
    steps, batch = (typical(dim, typical_values(lowering.block)) for dim in dims(op.input.type)[:2])
    return {shape.name: shape.microseconds(steps) * -(-batch // shape.batch) for shape in _shapes(op, lowering)}


def lower(op: RnnOp, lowering: Lowering) -> bool:
    shape = next((shape for shape in _shapes(op, lowering) if shape.name == lowering.choice(op)), None)
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
        packed = k.weights(for_lanes(recurrent.astype("float32"), shape), "recurrent")
        products = LaneProducts(k, shape, element, thread, block, packed)
    exchanges = [Exchange(k, shape, element, buffer, thread) for buffer in buffers]
    _Steps(op, k, shape, products, exchanges, thread, block).write()
    k.function.attributes["cooperative"] = UnitAttr()
    if op.scale is None:
        # Where hidden states are rounded to steps, the last bit of a function can be a step.
        k.function.attributes["close_functions"] = UnitAttr()
    if fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[shape.blocks, 1, 1], block=[shape.threads])
    return True


def _shapes(op: RnnOp, lowering: Lowering) -> list[PersistentShape]:
    """The shapes that apply: none where size or weights are not known, or the layer is too large for the device."""
    _, batch, gates, size = dims(op.input.type)
    element = element_of(op.input.type)
    if not (is_half(element) or isinstance(element, Float32Type)) or op.number_type != f32:
        return []
    if not isinstance(size, int) or not isinstance(gates, int):
        return []
    is_small = gates <= _MAX_GATES and size <= UNITS * min(_MAX_BLOCKS, lowering.target.gpu.processors)
    if not is_small or not isinstance(op.recurrent.owner, ConstantOp) or (op.scale is not None and is_half(element)):
        return []
    # Each sequence has steps of its own size.
    at_once = 1 if op.scale is not None else min(_MAX_SEQUENCES, typical(batch, typical_values(lowering.block)))
    return shapes_for(gates, size, at_once, is_half(element))


class _Steps:
    """Thread `8 * n + u` has the cell of unit u of its block for sequence n."""

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
        self.local = k.rem(thread, UNITS)
        self.unit = k.add(k.mul(block, UNITS), self.local)
        self.has_cell = k.compare("slt", thread, UNITS * shape.batch)
        is_even = shape.threads <= UNITS * shape.batch
        sequence = k.div(thread, UNITS)
        self.sequence = sequence if is_even else k.min(sequence, k.constant(shape.batch - 1))
        self.steps, self.batch = dims(op.input.type)[:2]
        self.is_whole = self.batch == shape.batch
        self.in_steps: SSAValue | None = None

    def write(self) -> None:
        k, shape = self.k, self.shape
        hidden = [self.products.hidden_memory() for _ in self.exchanges]
        for one in hidden:
            self._clear(one)
        if self.op.scale is not None:
            self.in_steps = self.products.hidden_memory()
        k.insert(BarrierOp())
        if self.is_whole:
            self._sequences(k.constant(0), k.constant(0), hidden)
            return
        flags = k.add(k.extent(self.steps), 1)  # that one round of sequences takes

        def some(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            used = k.mul(number, flags)
            self._sequences(k.mul(number, shape.batch), used, hidden)
            # Nobody may send what comes next before all threads have what was sent last.
            self.exchanges[0].receive(k.add(used, flags), hidden[0])
            k.insert(BarrierOp())
            return []

        k.loop(ceil_div(self.batch, shape.batch), [], some)

    def _sequences(self, first: SSAValue, used: SSAValue, hidden: Sequence[SSAValue]) -> None:
        """All steps of the sequences from `first` on; `used` is the largest flag so far."""
        op, k, shape = self.op, self.k, self.shape
        n, most = k.add(first, self.sequence), shape.batch if self.is_whole else _ANY
        cell = CellInRegisters(op, k, self.unit, n, shape.units, most)
        exists = None if self.is_whole else k.compare("slt", n, k.extent(self.batch))
        states = cell.begin()
        k.when(self.has_cell, lambda: self._send(0, cell, states[0], k.add(used, 1)))

        def step(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            x, states = carried[: op.gates], carried[op.gates :]
            # What the next step reads is on its way while this one waits for the other blocks.
            ahead = cell.inputs(k.min(k.add(number, 1), k.sub(k.extent(self.steps), 1)))
            flag = k.add(k.add(used, number), 1)
            return [*ahead, *self._step(cell, exists, cell.place(number), flag, x, states, hidden)]

        last = k.loop(self.steps, [*cell.first_inputs(), *states], step)[op.gates :]
        k.when(self.has_cell, lambda: self._where(exists, lambda: cell.put_states(last)))

    def _step(
        self,
        cell: CellInRegisters,
        exists: SSAValue | None,
        place: Place,
        flag: SSAValue,
        loaded: Sequence[SSAValue],
        states: list[SSAValue],
        hidden: Sequence[SSAValue],
    ) -> list[SSAValue]:
        """The states after a step; the state before it has the flag."""
        op, k = self.op, self.k
        size = self._products(0, flag, hidden)

        def reset() -> list[SSAValue]:
            accumulators = self._accumulators(cell, range(op.gates - 1))
            self._send(1, cell, cell.reset(loaded, accumulators, states), flag)
            return accumulators

        def new(first: Sequence[SSAValue]) -> list[SSAValue]:
            accumulators = [*first, *self._accumulators(cell, range(len(first), op.gates), size)]
            kept, out = cell.step(place, loaded, accumulators, states)
            self._send(0, cell, kept[0], k.add(flag, 1))
            self._where(exists, lambda: cell.put_out(place, out))
            return kept

        first: list[SSAValue] = []
        if op.has_reset:
            first = values_where(k, self.has_cell, reset, [k.constant(0, f32)] * (op.gates - 1))
            self._products(1, flag, hidden)
        return values_where(k, self.has_cell, lambda: new(first), states)

    def _products(self, which: int, flag: SSAValue, hidden: Sequence[SSAValue]) -> SSAValue | None:
        """The sums of products with what the exchange `which` brings, ready for all threads; the size of its steps."""
        k, size, factor = self.k, None, hidden[which]
        self.exchanges[which].receive(flag, hidden[which])
        k.insert(BarrierOp())
        if self.in_steps is not None:
            places = value_of(hidden[which]), value_of(self.in_steps)
            size = build(k, put_in_steps, self.shape, *places, self.products.size, value_of(self.thread))
            k.insert(BarrierOp())
            factor = self.in_steps
        self.products.multiply(factor)
        k.insert(BarrierOp())
        return size

    def _accumulators(self, cell: CellInRegisters, gates: range, size: SSAValue | None = None) -> list[SSAValue]:
        totals = [self.products.total(gate, self.local, self.sequence) for gate in gates]
        return cell.with_bias(totals if size is None else cell.scaled(totals, size), gates.start)

    def _send(self, which: int, cell: CellInRegisters, value: SSAValue, flag: SSAValue) -> None:
        self.exchanges[which].send(cell.sent(value), flag, self.sequence, self.unit)

    def _where(self, exists: SSAValue | None, then: Callable[[], None]) -> None:
        if exists is None:
            then()
        else:
            self.k.when(exists, then)

    def _clear(self, hidden: SSAValue) -> None:
        k = self.k
        zero = k.constant(0, element_of(self.op.input.type))
        count = self.products.size // self.shape.threads

        def one(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            at = k.add(k.mul(number, self.shape.threads), self.thread)
            k.insert(StoreOp(zero, hidden, [at], [1]))
            return []

        k.loop(count, [], one)
