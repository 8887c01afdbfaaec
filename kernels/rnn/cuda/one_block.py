"""All steps of a small recurrent layer in one block, whose warps keep the recurrent weights in registers.

Each warp has eight hidden units, with all of their gates and the whole depth, so that its threads need no others for
the accumulators of a cell. What they wait for in a step is one barrier:

    for step { x <- input; accumulators <- weights * hidden; cell; other hidden <- new hidden; barrier }
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from xdsl.dialects.builtin import Float32Type, IntegerAttr, UnitAttr, f32, i64

from mlirt.dialects.fused.rnn import RnnOp
from mlirt.dialects.kernel.simt import WARP
from mlirt.dialects.tensor_types import dims, element_of, is_half
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.cuda.tiles.problem import multiplies_halves
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.simt_words import shared_memory, sync_threads, thread_id
from mlirt.kernels.lib.language.words import constant, extent, place
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cuda.cell_in_registers import CellInRegisters, cell_at, fits_narrow, position_of
from mlirt.kernels.rnn.cuda.one_block_accumulators import Accumulators, lane_accumulators, matrix_unit_accumulators
from mlirt.kernels.rnn.cuda.persistent_shape import PersistentShape, one_block_shape
from mlirt.kernels.rnn.cuda.persistent_weights import for_lanes, for_matrix_unit
from mlirt.kernels.rnn.cuda.weights_in_registers import lane_rows, matrix_unit_rows

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
    packed = for_matrix_unit(recurrent, shape) if shape.half else for_lanes(recurrent, shape)
    build(k, _layer, op, shape, k.weights(packed, "recurrent"))
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


@kernel
def _layer(op: RnnOp, shape: PersistentShape, weights: Value) -> None:
    """Every thread computes all of its cells; only those that exist are stored."""
    thread, length = thread_id(), dims(op.input.type)[0]
    accumulators = _accumulators(op, shape, weights, thread)
    found = accumulators.places()
    positions = [position_of(op, accumulators.unit, one.sequence, shape.units, one.most) for one in found]
    # While a step reads one of two hidden vectors, it writes the other one.
    size = shape.sequences * shape.pitch
    hidden = _cleared(op, shape, "hidden", 2 * size, thread)
    inner = _cleared(op, shape, "inner", size, thread) if op.has_reset else None
    sync_threads()
    cells = [cell_at(op, at) for at in positions]
    steps = _Steps(op, shape, accumulators, cells, [one.exists for one in found], hidden, inner)
    states = [cell.initial for cell in cells]
    steps.send([state[0] for state in states], hidden, place(0))
    sync_threads()
    x = [cell.first_inputs() for cell in cells]
    for number in range(extent(length)):
        # What the next step reads is on its way while this one computes.
        ahead = value_of(min(number + 1, extent(length) - 1))
        now, x = x, [cell.inputs(ahead) for cell in cells]
        states = steps.step(value_of(number), now, states)
    for cell, kept, exists in zip(cells, states, steps.exists, strict=True):
        if exists:
            cell.put_states(kept)


@kernel
def _accumulators(op: RnnOp, shape: PersistentShape, weights: Value, thread: Value) -> Accumulators:
    """Those of a thread, with its weights loaded."""
    warp, lane = thread // WARP, thread % WARP
    if shape.half:
        rows = matrix_unit_rows(shape, element_of(op.input.type), lane, warp, weights)
        return matrix_unit_accumulators(shape, rows, warp, lane)
    return lane_accumulators(shape, lane_rows(shape, lane, warp, weights), warp, lane)


@kernel
def _cleared(op: RnnOp, shape: PersistentShape, name: str, size: int, thread: Value) -> Value:
    """Shared memory full of zeros, behind the next barrier."""
    threads, element = shape.blocks * WARP, element_of(op.input.type)
    rounds = -(-size // threads)
    memory = shared_memory(name, rounds * threads, element)
    for number in range(rounds):
        memory[number * threads + thread] = constant(0, element)
    return memory


@dataclass(frozen=True, eq=False)
class _Steps:
    """The steps of a thread's cells, of which not all may exist; hidden vectors are in shared memory."""

    op: RnnOp
    shape: PersistentShape
    accumulators: Accumulators
    cells: Sequence[CellInRegisters]
    exists: Sequence[bool]
    hidden: Value
    inner: Value | None

    @kernel
    def step(self, number: Value, x: Sequence[Cell], states: Sequence[Cell]) -> list[Cell]:
        """The states of each cell after a step."""
        op, cells, hidden, inner = self.op, self.cells, self.hidden, self.inner
        size = self.shape.sequences * self.shape.pitch
        source = number % 2 * size
        accumulators = self._accumulated(hidden, source)
        if inner is not None:
            reset = [cell.reset(x[c], accumulators[c][:-1], states[c]) for c, cell in enumerate(cells)]
            self.send(reset, inner, place(0))
            sync_threads()
            again = self._accumulated(inner, place(0), op.gates - 1)
            accumulators = [[*before[:-1], *last] for before, last in zip(accumulators, again, strict=True)]
        places = [cell.place(number) for cell in cells]
        new = [cell.step(places[c], x[c], accumulators[c], states[c]) for c, cell in enumerate(cells)]
        self.send([kept[0] for kept, _ in new], hidden, size - source)
        for c, cell in enumerate(cells):
            if self.exists[c]:
                cell.put_out(places[c], new[c][1])
        sync_threads()
        return [kept for kept, _ in new]

    @kernel
    def _accumulated(self, hidden: Value, start: Value, first: int = 0) -> list[list[Value]]:
        """For each cell the pre-activations of the gates from `first` on."""
        found = self.accumulators.of(hidden, start)
        return [cell.with_bias(gates[first:], first) for cell, gates in zip(self.cells, found, strict=True)]

    @kernel
    def send(self, values: Sequence[Value], hidden: Value, start: Value) -> None:
        """Put a number of each cell where all threads find it behind the next barrier."""
        for cell, exists, value in zip(self.cells, self.exists, values, strict=True):
            sent, at = cell.sent(value), start + (cell.at.n * self.shape.pitch + cell.at.unit)
            if exists:
                hidden[at] = sent
