"""Recurrent layers: one matrix product for the inputs of all steps, then the steps as `fused.rnn`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Attribute, Block, Region, SSAValue

from mlirt.dialects.fused.access import iteration
from mlirt.dialects.fused.rnn import RnnOp as FusedRnnOp
from mlirt.dialects.fused.scalar_activations import FORMULAS
from mlirt.dialects.fused.scalar_builder import Scalars, arguments_of, compute_type, end_with
from mlirt.dialects.symbolic import Dim, numbers_of, product
from mlirt.dialects.tensor_types import dims, element_of, numpy_dtype, tensor
from mlirt.dialects.trt.rnn import RnnCell, RnnOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions
from mlirt.passes.fusion.trt_to_fused.products import matmul

Cell = Callable[["CellWriter"], Sequence[SSAValue]]


def convert_rnn(at: Conversion) -> None:
    """`trt.rnn` becomes `fused.matmul` over all steps at once and `fused.rnn`."""
    op = at.op
    assert isinstance(op, RnnOp)
    steps, batch, width = dims(op.input.type)
    size, gates = op.hidden_size, op.gates
    projected = op.input
    if op.weights is not None:
        rows = at.viewed(op.input, [product([steps, batch]), width])
        projected = matmul(at, rows, op.weights, False, True, [] if op.bias is None else [op.bias])
    projected = at.viewed(projected, [steps, batch, gates, size])
    recurrent = _by_depth(at, op.recurrent, gates, size)
    is_lstm = op.cell.data is RnnCell.LSTM
    given = [op.initial_hidden, op.initial_cell] if is_lstm else [op.initial_hidden]
    states = [_state(at, state, op.input, [batch, size]) for state in given]
    peepholes = [] if op.peepholes is None else [_part(at, op.peepholes, k, size) for k in range(3)]
    recurrent_bias, last_biases = None, list[SSAValue]()
    if op.recurrent_bias is not None and op.scale is None:
        recurrent_bias = at.reshaped(op.recurrent_bias, [gates, size])
    elif op.recurrent_bias is not None:
        last_biases = [_part(at, op.recurrent_bias, gate, size) for gate in range(gates)]
    number = compute_type(element_of(op.input.type))
    needs_reset = op.cell.data is RnnCell.GRU and not op.linear_before_reset.value.data

    def region(write: Cell) -> Region:
        return CellWriter(op, number, len(states), len(peepholes), len(last_biases)).region(write)

    fused = FusedRnnOp(
        projected,
        recurrent,
        recurrent_bias,
        states,
        op.lengths,
        [*peepholes, *last_biases],
        region({RnnCell.SIMPLE: _simple, RnnCell.LSTM: _lstm, RnnCell.GRU: _gru}[op.cell.data]),
        region(_reset_hidden) if needs_reset else None,
        bool(op.reverse.value.data),
        None if op.scale is None else at.reshaped(op.scale, [gates, size]),
    )
    at.emit(fused)
    at.replace(*fused.outputs[: len(op.outputs)])


def _by_depth(at: Conversion, recurrent: SSAValue, gates: int, size: int) -> SSAValue:
    """The recurrent weights [G H, H] as [H, G, H]: neighbours in memory are neighbouring hidden units."""
    array = at.array_of(recurrent)
    if array is not None:
        return at.constant(array.T.reshape(size, gates, size).copy(), "recurrent")
    return at.transposed(at.viewed(recurrent, [gates, size, size]), [2, 0, 1])


def _state(at: Conversion, state: SSAValue | None, like: SSAValue, shape: Sequence[Dim]) -> SSAValue:
    """An initial state; zeros where none is given, and the one state of all sequences for each of them."""
    if state is not None:
        if dims(state.type) == tuple(shape):
            return state
        # Another name is the same length in every run: the layer requires it to be.
        return at.moved(state, shape, [0 if dims(state.type)[0] == 1 else iteration(0), iteration(1)])
    element = element_of(like.type)
    if all(isinstance(size, int) for size in shape):
        import numpy as np

        return at.constant(np.zeros(numbers_of(shape), numpy_dtype(element)), "zeros")
    return at.pointwise([], tensor(element, shape), None, lambda s, x: s.constant(0))


def _part(at: Conversion, vector: SSAValue, number: int, size: int) -> SSAValue:
    """One of the vectors of length `size` that lie behind one another."""
    array = at.array_of(vector)
    if array is not None:
        return at.constant(array[number * size : (number + 1) * size].copy(), "peepholes")
    return at.moved(vector, [size], [iteration(0) + number * size])


class CellWriter:
    """Writes a region of `fused.rnn`: the numbers of one hidden unit by name, and the layer's activations."""

    def __init__(self, op: RnnOp, number: Attribute, states: int, peepholes: int, last_biases: int) -> None:
        self.op = op
        self.block = Block()
        self.s = Scalars(self.block, number)
        counts = [op.gates, op.gates, states, peepholes, last_biases]
        arguments = iter(arguments_of(self.block, [number] * sum(counts)))
        self.x, self.r, self.states, self._peepholes, self._last_biases = (
            [next(arguments) for _ in range(count)] for count in counts
        )

    def region(self, write: Cell) -> Region:
        end_with(self.block, [(value, self.s.element) for value in write(self)])
        return Region(self.block)

    def total(self, gate: int) -> SSAValue:
        """What input and hidden state give a gate together."""
        both = self.s.add(self.x[gate], self.r[gate])
        return self.s.add(both, self._last_biases[gate]) if self._last_biases else both

    def activated(self, number: int, x: SSAValue) -> SSAValue:
        """Activation `number` of the layer for the sum of a gate, which is clipped."""
        s, clip = self.s, self.op.clip
        if clip is not None:
            x = s.min(s.max(x, s.constant(-clip.value.data)), s.constant(clip.value.data))
        return self.function(number, x)

    def function(self, number: int, x: SSAValue) -> SSAValue:
        """Activation `number` of the layer."""
        kind, alpha, beta = self.op.functions()[number]
        return FORMULAS[kind](self.s, x, alpha, beta)

    def peeped(self, number: int, x: SSAValue, cell: SSAValue) -> SSAValue:
        """x plus the cell state by peephole `number`, where the layer has peepholes."""
        return self.s.add(x, self.s.mul(self._peepholes[number], cell)) if self._peepholes else x


def _simple(w: CellWriter) -> Sequence[SSAValue]:
    return [w.activated(0, w.total(0))]


def _lstm(w: CellWriter) -> Sequence[SSAValue]:
    s, cell = w.s, w.states[1]
    into = w.activated(0, w.peeped(0, w.total(0), cell))
    if w.op.input_forget.value.data:
        keep = s.sub(s.constant(1), into)
    else:
        keep = w.activated(0, w.peeped(2, w.total(2), cell))
    new = s.add(s.mul(keep, cell), s.mul(into, w.activated(1, w.total(3))))
    out = w.activated(0, w.peeped(1, w.total(1), new))
    return [s.mul(out, w.function(2, new)), new]


def _gru(w: CellWriter) -> Sequence[SSAValue]:
    s = w.s
    update = w.activated(0, w.total(0))
    inner = w.r[2]
    if w.op.linear_before_reset.value.data:
        inner = s.mul(w.activated(0, w.total(1)), inner)
    new = w.activated(1, s.add(w.x[2], inner))
    return [s.add(s.mul(s.sub(s.constant(1), update), new), s.mul(update, w.states[0]))]


def _reset_hidden(w: CellWriter) -> Sequence[SSAValue]:
    return [w.s.mul(w.activated(0, w.total(1)), w.states[0])]


CONVERSIONS: Conversions = {RnnOp: convert_rnn}

__all__ = ["CONVERSIONS", "CellWriter", "convert_rnn"]
