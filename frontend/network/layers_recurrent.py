"""Recurrent layers whose weights are given gate by gate (deprecated in TensorRT: use loops)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, overload

import numpy as np
from xdsl.dialects.builtin import ArrayAttr
from xdsl.ir import SSAValue

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.activation import ActivationKind, ActivationKindAttr
from mlirt.dialects.trt.concatenation import ConcatenationOp
from mlirt.dialects.trt.rnn import RnnOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.dialects.trt.slice import SliceOp
from mlirt.errors import InvalidModelError
from mlirt.frontend.network.layer import ILayer
from mlirt.frontend.network.methods import Methods
from mlirt.frontend.network.settings import EnumSetting, IntSetting, Setting
from mlirt.tensorrt.deprecation import deprecated
from mlirt.tensorrt.layer_enums import LayerType, RNNDirection, RNNGateType, RNNInputMode, RNNOperation
from mlirt.tensorrt.weights import as_weights

if TYPE_CHECKING:
    from mlirt.frontend.network.emitter import LayerEmitter
    from mlirt.frontend.network.tensor import ITensor
    from mlirt.tensorrt.weights import Array, Weights

# In the order in which the op has their rows.
_GATES = {
    RNNOperation.RELU: (RNNGateType.INPUT,),
    RNNOperation.TANH: (RNNGateType.INPUT,),
    RNNOperation.LSTM: (RNNGateType.INPUT, RNNGateType.OUTPUT, RNNGateType.FORGET, RNNGateType.CELL),
    RNNOperation.GRU: (RNNGateType.UPDATE, RNNGateType.RESET, RNNGateType.HIDDEN),
}
_CELLS = {RNNOperation.LSTM: "lstm", RNNOperation.GRU: "gru"}
_HIDDEN, _CELL, _LENGTHS = 1, 2, 3

_NONE = np.empty(0, np.float32)

Gate = tuple[int, RNNGateType, bool]


class _StateInput:
    """An input that has a name of its own."""

    def __init__(self, index: int) -> None:
        self._index = index

    @overload
    def __get__(self, layer: None, owner: type[ILayer]) -> _StateInput: ...
    @overload
    def __get__(self, layer: ILayer, owner: type[ILayer]) -> ITensor | None: ...
    def __get__(self, layer: ILayer | None, owner: type[ILayer]) -> ITensor | _StateInput | None:
        return self if layer is None else layer.get_input(self._index)

    def __set__(self, layer: ILayer, tensor: ITensor) -> None:
        layer.set_input(self._index, tensor)


class IRNNv2Layer(ILayer):
    """RELU, TANH, LSTM or GRU cells in layers, forward or both ways (tensorrt-features.md#1.32a to 1.32c).

    The input is N x T x E, where N may be any number of dimensions; outputs are N x T x H (2 H both ways), the last
    hidden states N x layers x H, and of LSTM cells the last cell states. Both ways a layer counts as two, forward and
    backward. Sequences shorter than T, as `seq_lengths` [N] has it, end in zeros. Weights of a gate are H x E for its
    input and H x H for the hidden state.
    """

    KIND, TYPE, INPUTS = "RNN", LayerType.RNN_V2, 4
    op = EnumSetting(RNNOperation.RELU)
    direction = EnumSetting(RNNDirection.UNIDIRECTION)
    input_mode = EnumSetting(RNNInputMode.LINEAR)
    layer_count = IntSetting(1)
    hidden_size = IntSetting(1)
    max_seq_length = IntSetting(0)
    weights = Setting["dict[Gate, Array]"]({})
    biases = Setting["dict[Gate, Array]"]({})
    hidden_state = _StateInput(_HIDDEN)
    cell_state = _StateInput(_CELL)
    seq_lengths = _StateInput(_LENGTHS)

    @property
    def num_layers(self) -> int:
        return self.layer_count

    @property
    def data_length(self) -> int:
        """The numbers of one step of the input."""
        of = self.get_input(0)
        return 0 if of is None else of.shape[-1]

    def set_weights_for_gate(self, layer_index: int, gate: RNNGateType, is_w: bool, weights: Weights | Array) -> bool:
        """The weights of a gate, for the input with `is_w`, else for the hidden state; False for what is no gate."""
        return self._set("weights", (layer_index, gate, is_w), weights)

    def get_weights_for_gate(self, layer_index: int, gate: RNNGateType, is_w: bool) -> Array:
        return self.weights.get((layer_index, gate, is_w), _NONE)

    def set_bias_for_gate(self, layer_index: int, gate: RNNGateType, is_w: bool, bias: Weights | Array) -> bool:
        """The bias of a gate, beside the product of the input with `is_w`; False for what is no gate."""
        return self._set("biases", (layer_index, gate, is_w), bias)

    def get_bias_for_gate(self, layer_index: int, gate: RNNGateType, is_w: bool) -> Array:
        return self.biases.get((layer_index, gate, is_w), _NONE)

    def _set(self, kind: str, key: Gate, weights: Weights | Array) -> bool:
        if key[1] not in _GATES[self.op] or not 0 <= key[0] < self._sublayers:
            return False
        setattr(self, kind, {**getattr(self, kind), key: as_weights(weights).numpy()})
        return True

    @property
    def _ways(self) -> int:
        return 2 if self.direction is RNNDirection.BIDIRECTION else 1

    @property
    def _sublayers(self) -> int:
        return self.layer_count * 2  # the direction may be set after weights

    def emit(self, ir: LayerEmitter) -> Sequence[SSAValue]:
        if rank(ir.input(0).type) < 2:
            raise InvalidModelError(f"{self.name}: the input is batch x steps x numbers, got {ir.input(0).type}")
        batch = dims(ir.input(0).type)[:-2]
        x = ir.value(ShuffleOp, _as_one_batch(ir, ir.input(0), 2), None, first_transpose=[1, 0, 2])
        states: list[Sequence[SSAValue]] = []
        for layer in range(self.layer_count):
            made = [self._way(ir, x, layer, way) for way in range(self._ways)]
            x = made[0][0] if len(made) == 1 else _joined(ir, [one[0] for one in made], 2)
            states += [one[1:] for one in made]
        data = ir.value(ShuffleOp, x, None, first_transpose=[1, 0, 2])
        last = (_joined(ir, [_with_layer(ir, one) for one in kind], 1) for kind in zip(*states, strict=True))
        return [_in_batches(ir, one, batch) for one in (data, *last)]

    def _way(self, ir: LayerEmitter, x: SSAValue, layer: int, way: int) -> Sequence[SSAValue]:
        """The outputs [T, N, H] and last states [N, H] of one layer in one direction."""
        number = layer * self._ways + way
        size, length = self.hidden_size, dims(x.type)[-1]
        skips = layer == 0 and self.input_mode is RNNInputMode.SKIP
        stacked = {
            "kernel": self._identities() if skips else self._matrix(number, True, length),
            "recurrent kernel": self._matrix(number, False, size),
            "bias": self._vector(number, True),
            "recurrent bias": self._vector(number, False),
        }
        given = {what: ir.weights(array, array.shape, x, f"{what} {number}") for what, array in stacked.items()}
        lstm = self.op is RNNOperation.LSTM
        states = [_of_layer(ir, _as_one_batch(ir, ir.maybe_input(_HIDDEN), 2), number)]
        states.append(_of_layer(ir, _as_one_batch(ir, ir.maybe_input(_CELL), 2), number) if lstm else None)
        operands = [x, given["recurrent kernel"], given["kernel"], given["bias"], given["recurrent bias"], *states]
        simple = self.op in (RNNOperation.RELU, RNNOperation.TANH)
        activation = ActivationKindAttr(ActivationKind[self.op.name]) if simple else None
        properties = {
            "cell": _CELLS.get(self.op, "simple"),
            "activations": None if activation is None else ArrayAttr([activation]),
            "reverse": way == 1,
            "linear_before_reset": True,
        }
        lengths = _as_one_batch(ir, ir.maybe_input(_LENGTHS), 0)
        return ir.op(RnnOp, [*operands, lengths, None, None], properties, 3 if lstm else 2)

    def _identities(self) -> Array:
        return np.concatenate([np.eye(self.hidden_size, dtype=np.float32)] * len(_GATES[self.op]))

    def _matrix(self, number: int, is_w: bool, length: Dim) -> Array:
        """The rows of all gates."""
        size = self.hidden_size
        parts: list[Array] = []
        for gate in _GATES[self.op]:
            found = self.get_weights_for_gate(number, gate, is_w)
            if not isinstance(length, int) or found.size != size * length:
                of = "input" if is_w else "hidden state"
                raise InvalidModelError(
                    f"{self.name}: layer {number}, gate {gate.name}: weights of the {of} have count {found.size}, but "
                    f"[{size}, {length}] was expected"
                )
            parts.append(found.reshape(size, length))
        return np.concatenate(parts)

    def _vector(self, number: int, is_w: bool) -> Array:
        """The biases of all gates; 0 for those that are not set."""
        found = [self.get_bias_for_gate(number, gate, is_w) for gate in _GATES[self.op]]
        return np.concatenate([one.ravel() if one.size else np.zeros(self.hidden_size, np.float32) for one in found])


class RecurrentMethods(Methods):
    """`add_rnn_v2`."""

    def add_rnn_v2(
        self, input: ITensor, layer_count: int, hidden_size: int, max_seq_length: int, op: RNNOperation
    ) -> IRNNv2Layer:
        deprecated("add_loop")
        settings = {"op": op, "layer_count": layer_count, "hidden_size": hidden_size, "max_seq_length": max_seq_length}
        outputs = 3 if op is RNNOperation.LSTM else 2
        return self.graph.add(IRNNv2Layer, [input], outputs=outputs, settings=settings)


def _as_one_batch(ir: LayerEmitter, value: SSAValue | None, inner: int) -> SSAValue | None:
    """A tensor whose dimensions before the `inner` last ones are one."""
    if value is None or rank(value.type) == inner + 1:
        return value
    lengths = dims(value.type)
    outer = lengths[: len(lengths) - inner]
    count: Dim = 1
    for length in outer:
        count = count * length
    shape = [count, *lengths[len(outer) :]]
    return ir.value(ShuffleOp, value, None, reshape_dims=shape, zero_is_placeholder=False)


def _in_batches(ir: LayerEmitter, value: SSAValue, batch: Sequence[Dim]) -> SSAValue:
    """A tensor with these dimensions in the place of its first one."""
    if len(batch) == 1:
        return value
    shape = [*batch, *dims(value.type)[1:]]
    return ir.value(ShuffleOp, value, None, reshape_dims=shape, zero_is_placeholder=False)


def _of_layer(ir: LayerEmitter, states: SSAValue | None, number: int) -> SSAValue | None:
    """The state [N, H] of one layer."""
    if states is None:
        return None
    batch, _, size = dims(states.type)
    part = {"start": [0, number, 0], "size": [batch, 1, size], "stride": [1, 1, 1]}
    one = ir.op(SliceOp, [states, None, None, None, None], part)[0]
    return ir.value(ShuffleOp, one, None, reshape_dims=[batch, size], zero_is_placeholder=False)


def _with_layer(ir: LayerEmitter, state: SSAValue) -> SSAValue:
    batch, size = dims(state.type)
    return ir.value(ShuffleOp, state, None, reshape_dims=[batch, 1, size], zero_is_placeholder=False)


def _joined(ir: LayerEmitter, parts: Sequence[SSAValue], axis: int) -> SSAValue:
    return ir.op(ConcatenationOp, [list(parts)], {"axis": axis})[0]
