"""Persistent kernels for recurrent layers: all steps in one launch, the recurrent weights in the blocks' registers.

Each block has eight hidden units. In a step it waits for the hidden state of all blocks, multiplies, computes the cells
of its units, and sends their hidden state to the others:

    for step { x <- input; hidden <- words; barrier; accumulators <- weights * hidden; barrier; cell; words <- new
    hidden }

Where there are more sequences than the blocks have threads and registers for, or nobody knows how many, all of this is
done for some of them after the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, IntegerAttr, UnitAttr, f32, i64

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.flagged_word import word_type
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.tiles.problem import multiplies_halves
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.simt_words import block_id, sync_threads, thread_id
from mlirt.kernels.lib.language.words import ceil_div, constant, extent, place, static_range
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cuda.cell_in_registers import CellInRegisters, Place, cell_at, fits_narrow, position_of
from mlirt.kernels.rnn.cuda.persistent_exchange import Exchange, new_words
from mlirt.kernels.rnn.cuda.persistent_products import Products, products_of
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
    device = lowering.target.gpu.recurrent
    return {one.name: one.microseconds(steps, device) * -(-batch // one.batch) for one in _shapes(op, lowering)}


def lower(op: RnnOp, lowering: Lowering) -> bool:
    shape = next((shape for shape in _shapes(op, lowering) if shape.name == lowering.choice(op)), None)
    recurrent = lowering.constant_array(op.recurrent)
    if shape is None or recurrent is None:
        return False
    element = element_of(op.input.type)
    buffers = [new_words(lowering, op, shape, element) for _ in range(2 if op.has_reset else 1)]
    k = lowering.kernel("rnn")
    packed = for_matrix_unit(recurrent, shape) if shape.half else for_lanes(recurrent.astype("float32"), shape)
    weights = k.weights(packed, "recurrent")
    build(k, _layer, op, shape, weights, [k.memory(buffer, word_type(element)) for buffer in buffers])
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
    if not (multiplies_halves(element, lowering.target) or isinstance(element, Float32Type)) or op.number_type != f32:
        return []
    if not isinstance(size, int) or not isinstance(gates, int):
        return []
    is_small = gates <= _MAX_GATES and size <= UNITS * min(_MAX_BLOCKS, lowering.target.gpu.processors)
    if not is_small or not isinstance(op.recurrent.owner, ConstantOp) or (op.scale is not None and is_half(element)):
        return []
    # Each sequence has steps of its own size.
    at_once = 1 if op.scale is not None else min(_MAX_SEQUENCES, typical(batch, typical_values(lowering.block)))
    return shapes_for(gates, size, at_once, is_half(element), lowering.target.gpu)


@kernel
def _layer(op: RnnOp, shape: PersistentShape, weights: Value, words: Sequence[Value]) -> None:
    """Thread `8 * n + u` has the cell of unit u of its block for sequence n."""
    thread, block, element = thread_id(), block_id(), element_of(op.input.type)
    products = products_of(shape, element, thread, block, weights)
    exchanges = [Exchange(shape, element, thread, one) for one in words]
    local = thread % UNITS
    unit = block * UNITS + local
    has_cell = thread < UNITS * shape.batch
    sequence = thread // UNITS
    if shape.threads > UNITS * shape.batch:
        sequence = value_of(min(sequence, shape.batch - 1))
    _Steps(op, shape, products, exchanges, thread, local, unit, sequence, has_cell).write()


@dataclass(frozen=True, eq=False)
class _Steps:
    """All steps of a thread that has the cell of `unit`, the `local` one of its block, if it has one."""

    op: RnnOp
    shape: PersistentShape
    products: Products
    exchanges: Sequence[Exchange]
    thread: Value
    local: Value
    unit: Value
    sequence: Value
    has_cell: bool

    @property
    def steps(self) -> Dim:
        """The length of the sequences."""
        return dims(self.op.input.type)[0]

    @property
    def batch(self) -> Dim:
        """How many sequences there are."""
        return dims(self.op.input.type)[1]

    @property
    def is_whole(self) -> bool:
        """Whether all sequences are computed at once."""
        return self.batch == self.shape.batch

    @kernel
    def write(self) -> None:
        shape = self.shape
        hidden = [self.products.hidden_memory() for _ in self.exchanges]
        for one in hidden:
            self._clear(one)
        in_steps = None if self.op.scale is None else self.products.hidden_memory()
        sync_threads()
        if self.is_whole:
            self._sequences(place(0), place(0), hidden, in_steps)
        else:
            flags = extent(self.steps) + 1  # that one round of sequences takes
            for number in range(extent(ceil_div(self.batch, shape.batch))):
                used = number * flags
                self._sequences(value_of(number * shape.batch), used, hidden, in_steps)
                # Nobody may send what comes next before all threads have what was sent last.
                self.exchanges[0].receive(used + flags, hidden[0])
                sync_threads()

    @kernel
    def _sequences(self, first: Value, used: Value, hidden: Sequence[Value], in_steps: Value | None) -> None:
        """All steps of the sequences from `first` on; `used` is the largest flag so far."""
        n, most = first + self.sequence, self.shape.batch if self.is_whole else _ANY
        at = position_of(self.op, self.unit, n, self.shape.units, most)
        exists = self.is_whole or n < extent(self.batch)
        cell = cell_at(self.op, at)
        states = cell.initial
        if self.has_cell:
            self._send(0, cell, states[0], used + 1)
        x = cell.first_inputs()
        for number in range(extent(self.steps)):
            # What the next step reads is on its way while this one waits for the other blocks.
            now, x = x, cell.inputs(value_of(min(number + 1, extent(self.steps) - 1)))
            flag = used + number + 1
            states = self._step(cell, exists, cell.place(value_of(number)), flag, now, states, hidden, in_steps)
        if self.has_cell:
            if exists:
                cell.put_states(states)

    @kernel
    def _step(
        self,
        cell: CellInRegisters,
        exists: bool,
        at: Place,
        flag: Value,
        loaded: Sequence[Value],
        states: list[Value],
        hidden: Sequence[Value],
        in_steps: Value | None,
    ) -> list[Value]:
        """The states after a step; the state before it has the flag."""
        op, gates = self.op, self.op.gates
        size = self._products(0, flag, hidden[0], in_steps)
        first = list[Value]()
        if op.has_reset:
            first = [constant(0, f32)] * (gates - 1)
            if self.has_cell:
                first = self._accumulators(cell, 0, gates - 1)
                self._send(1, cell, cell.reset(loaded, first, states), flag)
            self._products(1, flag, hidden[1], in_steps)
        if self.has_cell:
            accumulators = [*first, *self._accumulators(cell, len(first), gates, size)]
            states, out = cell.step(at, loaded, accumulators, states)
            self._send(0, cell, states[0], flag + 1)
            if exists:
                cell.put_out(at, out)
        return states

    @kernel
    def _products(self, which: int, flag: Value, hidden: Value, in_steps: Value | None) -> Value | None:
        """The sums of products with what the exchange `which` brings, ready for all threads; the size of its steps."""
        self.exchanges[which].receive(flag, hidden)
        sync_threads()
        size = None
        if in_steps is not None:
            size = put_in_steps(self.shape, hidden, in_steps, self.products.size, self.thread)
            sync_threads()
        self.products.multiply(hidden if in_steps is None else in_steps)
        sync_threads()
        return size

    @kernel
    def _accumulators(self, cell: CellInRegisters, start: int, stop: int, size: Value | None = None) -> list[Value]:
        totals = [self.products.total(gate, self.local, self.sequence) for gate in static_range(start, stop)]
        return cell.with_bias(totals if size is None else cell.scaled(totals, size), start)

    @kernel
    def _send(self, which: int, cell: CellInRegisters, value: Value, flag: Value) -> None:
        self.exchanges[which].send(cell.sent(value), flag, self.sequence, self.unit)

    @kernel
    def _clear(self, hidden: Value) -> None:
        for number in range(self.products.size // self.shape.threads):
            hidden[number * self.shape.threads + self.thread] = constant(0, element_of(self.op.input.type))
