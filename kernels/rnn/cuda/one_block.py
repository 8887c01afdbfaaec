"""All steps of a small recurrent layer in one block, whose warps keep the recurrent weights in registers.

Each warp has eight hidden units, with all of their gates and the whole depth, so that its threads need no others for
the accumulators of a cell. What they wait for in a step is one barrier:

    for step { x <- input; accumulators <- weights * hidden; cell; other hidden <- new hidden; barrier }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from xdsl.dialects.builtin import Float32Type, IntegerAttr, UnitAttr, f32, i64

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.simt import WARP, ThreadIdOp
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.cuda.tiles.problem import multiplies_halves
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.simt_words import shared_memory, sync_threads
from mlirt.kernels.lib.language.words import constant, extent, place, static_range
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
Cell: TypeAlias = "Sequence[Value]"
"""What one cell has of something: its states, or its inputs for all gates."""


def estimates(op: RnnOp, lowering: Lowering) -> Mapping[str, float]:
    shape = _shape(op, lowering)
    if shape is None:
        return {}
    steps = typical(dims(op.input.type)[0], typical_values(lowering.block))
    return {f"w{shape.blocks}": shape.microseconds_in_one_block(steps, lowering.target.gpu.recurrent)}


def lower(op: RnnOp, lowering: Lowering) -> bool:
    shape, recurrent = _shape(op, lowering), lowering.constant_array(op.recurrent)
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
    build(k, _Steps(op, k, shape, accumulators).write, thread)
    k.function.attributes["close_functions"] = UnitAttr()
    if fits_narrow(op, lowering):
        k.function.attributes["index_bits"] = IntegerAttr(32, i64)
    k.finish(op, grid=[1, 1, 1], block=[shape.blocks * WARP])
    return True


def _shape(op: RnnOp, lowering: Lowering) -> PersistentShape | None:
    """What each warp has; None where sizes or weights are not known, or too large for one block."""
    _, batch, _, size = dims(op.input.type)
    element = element_of(op.input.type)
    if not (multiplies_halves(element, lowering.target) or isinstance(element, Float32Type)) or op.number_type != f32:
        return None
    if not isinstance(batch, int) or not isinstance(size, int) or not 0 < batch or op.gates > _MAX_GATES:
        return None
    if not isinstance(op.recurrent.owner, ConstantOp) or op.scale is not None:
        return None
    return one_block_shape(op.gates, size, batch, is_half(element), lowering.target.gpu)


class _Steps:
    """Every thread computes all of its cells; only those that exist are stored."""

    def __init__(self, op: RnnOp, k: KernelBuilder, shape: PersistentShape, accumulators: Accumulators) -> None:
        self.op, self.k, self.shape, self.accumulators = op, k, shape, accumulators
        found = accumulators.places()
        self.cells = [CellInRegisters(op, k, accumulators.unit, one.sequence, shape.units, one.most) for one in found]
        self.exists = [one.exists for one in found]
        # While a step reads one of two hidden vectors, it writes the other one.
        self.size = shape.sequences * shape.pitch

    @kernel
    def write(self, thread: Value) -> None:
        op, length = self.op, dims(self.op.input.type)[0]
        hidden = self._cleared("hidden", 2 * self.size, thread)
        inner = self._cleared("inner", self.size, thread) if op.has_reset else None
        sync_threads()
        states = [cell.begin() for cell in self.cells]
        self._send([state[0] for state in states], hidden, place(0))
        sync_threads()
        x = [cell.first_inputs() for cell in self.cells]
        for number in range(extent(length)):
            # What the next step reads is on its way while this one computes.
            ahead = value_of(min(number + 1, extent(length) - 1))
            now, x = x, [cell.inputs(ahead) for cell in self.cells]
            states = self._step(value_of(number), now, states, hidden, inner)
        for c in static_range(len(self.cells)):
            if self.exists[c]:
                self.cells[c].put_states(states[c])

    @kernel
    def _step(
        self, number: Value, x: Sequence[Cell], states: Sequence[Cell], hidden: Value, inner: Value | None
    ) -> list[Cell]:
        """The states of each cell after a step."""
        op, cells = self.op, self.cells
        source = number % 2 * self.size
        accumulators = self._accumulators(hidden, source)
        if inner is not None:
            reset = [cell.reset(x[c], accumulators[c][:-1], states[c]) for c, cell in enumerate(cells)]
            self._send(reset, inner, place(0))
            sync_threads()
            again = self._accumulators(inner, place(0), op.gates - 1)
            accumulators = [[*before[:-1], *last] for before, last in zip(accumulators, again, strict=True)]
        places = [cell.place(number) for cell in cells]
        new = [cell.step(places[c], x[c], accumulators[c], states[c]) for c, cell in enumerate(cells)]
        self._send([kept[0] for kept, _ in new], hidden, self.size - source)
        for c in static_range(len(cells)):
            if self.exists[c]:
                cells[c].put_out(places[c], new[c][1])
        sync_threads()
        return [kept for kept, _ in new]

    def _accumulators(self, hidden: Value, start: Value, first: int = 0) -> list[list[Value]]:
        """For each cell the pre-activations of the gates from `first` on."""
        found = self.accumulators.of(hidden, start)
        return [
            cell.with_bias(accumulators[first:], first) for cell, accumulators in zip(self.cells, found, strict=True)
        ]

    @kernel
    def _send(self, values: Sequence[Value], hidden: Value, start: Value) -> None:
        """Put a number of each cell where all threads find it behind the next barrier."""
        for cell, exists, value in zip(self.cells, self.exists, values, strict=True):
            sent, at = cell.sent(value), start + (cell.n * self.shape.pitch + cell.unit)
            if exists:
                hidden[at] = sent

    @kernel
    def _cleared(self, name: str, size: int, thread: Value) -> Value:
        """Shared memory full of zeros, behind the next barrier."""
        threads, element = self.shape.blocks * WARP, element_of(self.op.input.type)
        rounds = -(-size // threads)
        memory = shared_memory(name, rounds * threads, element)
        for number in range(rounds):
            memory[number * threads + thread] = constant(0, element)
        return memory
