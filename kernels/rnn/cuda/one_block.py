"""All steps of a small recurrent layer in one block, whose warps keep the recurrent weights in registers.

Each warp has eight hidden units, with all of their gates and the whole depth, so that its threads need no others for
the accumulators of a cell. What they wait for in a step is one barrier:

    for step { x <- input; accumulators <- weights * hidden; cell; other hidden <- new hidden; barrier }
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from xdsl.dialects.builtin import Float32Type, IntegerAttr, UnitAttr, f32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.core import StoreOp
from mlirt.dialects.kernel.simt import WARP, BarrierOp, SharedOp, ThreadIdOp
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cuda.cell_in_registers import CellInRegisters, fits_narrow
from mlirt.kernels.rnn.cuda.one_block_accumulators import Accumulators, LaneAccumulators, MatrixUnitAccumulators
from mlirt.kernels.rnn.cuda.persistent_shape import PersistentShape, one_block_shape
from mlirt.kernels.rnn.cuda.persistent_weights import for_lanes, for_matrix_unit
from mlirt.kernels.rnn.cuda.weights_in_registers import LaneRows, MatrixUnitRows

OPS = (RnnOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_MAX_GATES = 4


def estimates(op: RnnOp, lowering: Lowering) -> Mapping[str, float]:
    shape = _shape(op)
    if shape is None:
        return {}
    steps = typical(dims(op.input.type)[0], typical_values(lowering.block))
    return {f"w{shape.blocks}": shape.microseconds_in_one_block(steps)}


def lower(op: RnnOp, lowering: Lowering) -> bool:
    shape, recurrent = _shape(op), lowering.constant_array(op.recurrent)
    if shape is None or recurrent is None:
        return False
    k = lowering.kernel("rnn")
    thread = k.value(ThreadIdOp())
    thread.name_hint = "thread"
    warp, lane = k.div(thread, WARP), k.rem(thread, WARP)
    if shape.half:
        packed = k.weights(for_matrix_unit(recurrent, shape), "recurrent")
        rows = MatrixUnitRows(k, shape, element_of(op.input.type), lane, warp, packed)
        accumulators: Accumulators = MatrixUnitAccumulators(k, shape, rows, warp, lane)
    else:
        packed = k.weights(for_lanes(recurrent, shape), "recurrent")
        accumulators = LaneAccumulators(k, shape, LaneRows(k, shape, lane, warp, packed), warp, lane)
    _Steps(op, k, shape, accumulators, thread).write()
    k.function.attributes["close_functions"] = UnitAttr()
    if fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[1, 1, 1], block=[shape.blocks * WARP])
    return True


def _shape(op: RnnOp) -> PersistentShape | None:
    """What each warp has; None where sizes or weights are not known, or too large for one block."""
    _, batch, _, size = dims(op.input.type)
    element = element_of(op.input.type)
    if not (is_half(element) or isinstance(element, Float32Type)) or op.number_type != f32:
        return None
    if not isinstance(batch, int) or not isinstance(size, int) or not 0 < batch or op.gates > _MAX_GATES:
        return None
    if not isinstance(op.recurrent.owner, ConstantOp) or op.scale is not None:
        return None
    return one_block_shape(op.gates, size, batch, is_half(element))


class _Steps:
    """Every thread computes all of its cells; only those that exist are stored."""

    def __init__(
        self, op: RnnOp, k: KernelBuilder, shape: PersistentShape, accumulators: Accumulators, thread: SSAValue
    ) -> None:
        self.op, self.k, self.shape, self.accumulators, self.thread = op, k, shape, accumulators, thread
        found = accumulators.places()
        self.cells = [CellInRegisters(op, k, accumulators.unit, one.sequence, shape.units, one.most) for one in found]
        self.exists = [one.exists for one in found]
        # While a step reads one of two hidden vectors, it writes the other one.
        self.size = shape.sequences * shape.pitch
        self.hidden = self._memory("hidden", 2 * self.size)
        self.inner = self._memory("inner", self.size) if op.has_reset else None

    def write(self) -> None:
        op, k = self.op, self.k
        k.insert(BarrierOp())
        states = [cell.begin() for cell in self.cells]
        self._send([state[0] for state in states], self.hidden, k.constant(0))
        k.insert(BarrierOp())
        steps, inputs = dims(op.input.type)[0], op.gates * len(self.cells)

        def step(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            # What the next step reads is on its way while this one computes.
            ahead = self._inputs(k.min(k.add(number, 1), k.sub(k.extent(steps), 1)))
            new = self._step(number, self._by_cell(carried[:inputs]), self._by_cell(carried[inputs:]))
            return [*ahead, *_flat(new)]

        first = _flat([cell.first_inputs() for cell in self.cells])
        last = k.loop(steps, [*first, *_flat(states)], step)
        for cell, exists, state in zip(self.cells, self.exists, self._by_cell(last[inputs:]), strict=True):
            self._where(exists, lambda cell=cell, state=state: cell.put_states(state))

    def _inputs(self, number: SSAValue) -> list[SSAValue]:
        return _flat([cell.inputs(number) for cell in self.cells])

    def _by_cell(self, values: Sequence[SSAValue]) -> list[Sequence[SSAValue]]:
        count = len(values) // len(self.cells)
        return [values[at : at + count] for at in range(0, len(values), count)]

    def _step(
        self, number: SSAValue, x: Sequence[Sequence[SSAValue]], states: Sequence[Sequence[SSAValue]]
    ) -> list[list[SSAValue]]:
        """The states of each cell after a step."""
        op, k = self.op, self.k
        parity = k.rem(number, 2)
        source = k.mul(parity, self.size)
        accumulators = self._accumulators(self.hidden, source)
        if self.inner is not None:
            inner = [cell.reset(x[c], accumulators[c][:-1], states[c]) for c, cell in enumerate(self.cells)]
            self._send(inner, self.inner, k.constant(0))
            k.insert(BarrierOp())
            again = self._accumulators(self.inner, k.constant(0), op.gates - 1)
            accumulators = [[*before[:-1], *last] for before, last in zip(accumulators, again, strict=True)]
        places = [cell.place(number) for cell in self.cells]
        new = [cell.step(places[c], x[c], accumulators[c], states[c]) for c, cell in enumerate(self.cells)]
        self._send([kept[0] for kept, _ in new], self.hidden, k.sub(k.constant(self.size), source))
        for cell, exists, place, (_, out) in zip(self.cells, self.exists, places, new, strict=True):
            self._where(exists, lambda cell=cell, place=place, out=out: cell.put_out(place, out))
        k.insert(BarrierOp())
        return [kept for kept, _ in new]

    def _accumulators(self, hidden: SSAValue, start: SSAValue, first: int = 0) -> list[list[SSAValue]]:
        """For each cell the pre-activations of the gates from `first` on."""
        found = self.accumulators.of(hidden, start)
        return [
            cell.with_bias(accumulators[first:], first) for cell, accumulators in zip(self.cells, found, strict=True)
        ]

    def _send(self, values: Sequence[SSAValue], hidden: SSAValue, start: SSAValue) -> None:
        """Put a number of each cell where all threads find it behind the next barrier."""
        k = self.k
        for cell, exists, value in zip(self.cells, self.exists, values, strict=True):
            sent, at = cell.sent(value), k.add(start, k.add(k.mul(cell.n, self.shape.pitch), cell.unit))

            def store(sent: SSAValue = sent, at: SSAValue = at) -> None:
                k.insert(StoreOp(sent, hidden, [at], [1]))

            self._where(exists, store)

    def _where(self, exists: SSAValue | None, then: Callable[[], None]) -> None:
        if exists is None:
            then()
        else:
            self.k.when(exists, then)

    def _memory(self, name: str, size: int) -> SSAValue:
        """Shared memory full of zeros, behind the next barrier."""
        k, threads = self.k, self.shape.blocks * WARP
        rounds = -(-size // threads)
        memory = k.value(SharedOp(rounds * threads, element_of(self.op.input.type)))
        memory.name_hint = name
        zero = k.constant(0, element_of(self.op.input.type))

        def one(number: SSAValue, _: list[SSAValue]) -> list[SSAValue]:
            k.insert(StoreOp(zero, memory, [k.add(k.mul(number, threads), self.thread)], [1]))
            return []

        k.loop(rounds, [], one)
        return memory


def _flat(lists: Sequence[Sequence[SSAValue]]) -> list[SSAValue]:
    return [value for one in lists for value in one]
