"""RNN, LSTM and GRU: one `trt.rnn` for each layer and direction."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from xdsl.dialects.builtin import ArrayAttr

from mlirt.dialects.trt.activation import ActivationKind, ActivationKindAttr
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.torch.call import Call
from mlirt.frontend.torch.handlers import aten_op

# For each operator our cell, its activations, and which of PyTorch's gates stands at each place of ours.
_CELLS: dict[str, tuple[str, list[str], list[int]]] = {
    "lstm": ("lstm", ["sigmoid", "tanh", "tanh"], [0, 3, 1, 2]),
    "gru": ("gru", ["sigmoid", "tanh"], [1, 0, 2]),
    "rnn_tanh": ("simple", ["tanh"], [0]),
    "rnn_relu": ("simple", ["relu"], [0]),
}


@aten_op("lstm.input", "gru.input", "rnn_tanh.input", "rnn_relu.input")
def recurrent(net: Network, call: Call) -> Sequence[Value]:
    """The outputs of the last layer [T, N, D H] (or batch first), and the last states of all layers [L D, N, H]."""
    name = call.operator.split(".")[1]
    if call.flag("train") and call.real("dropout") != 0.0:
        raise call.unsupported("it is in training mode; call eval() on the module")
    x, batch_first = call.value("input"), call.flag("batch_first")
    if x.rank != 3:
        raise call.unsupported("its input has no batch; add one by unsqueeze")
    directions, count = 2 if call.flag("bidirectional") else 1, call.integer("num_layers")
    states = call.values("hx") if name == "lstm" else [call.value("hx")]
    parameters, each = call.values("params"), 4 if call.flag("has_biases") else 2
    if len(parameters) != each * directions * count:
        raise call.unsupported("it has projections (proj_size), which are not computed")
    x = layers.transpose(net, x, [1, 0, 2]) if batch_first else x
    last: list[list[Value]] = []
    for layer in range(count):
        outputs: list[Value] = []
        for backwards in range(directions):
            place = layer * directions + backwards
            given = [layers.squeeze(net, layers.along(net, state, 0, place, 1), [0]) for state in states]
            results = _direction(net, name, x, given, parameters[each * place : each * (place + 1)], bool(backwards))
            outputs.append(results[0])
            last.append(list(results[1:]))
        x = layers.concatenate(net, outputs, 2)
    ends = [
        layers.concatenate(net, [layers.unsqueeze(net, state, [0]) for state in column], 0)
        for column in zip(*last, strict=True)
    ]
    return [layers.transpose(net, x, [1, 0, 2]) if batch_first else x, *ends]


def _direction(
    net: Network, name: str, x: Value, states: Sequence[Value], given: Sequence[Value], backwards: bool
) -> Sequence[Value]:
    cell, activations, order = _CELLS[name]
    weights, recurrent_weights, *biases = (_reordered(net, value, order) for value in given)
    bias, recurrent_bias = biases or (None, None)
    zeros = [0.0] * len(activations)
    return net.emit_many(
        "rnn",
        [
            *(x, recurrent_weights, weights, bias, recurrent_bias),
            *(states[0], states[1] if cell == "lstm" else None, None, None, None),
        ],
        3 if cell == "lstm" else 2,
        cell=cell,
        activations=ArrayAttr([ActivationKindAttr(ActivationKind(one)) for one in activations]),
        alphas=zeros,
        betas=zeros,
        reverse=backwards,
        linear_before_reset=cell == "gru",
    )


def _reordered(net: Network, x: Value, order: Sequence[int]) -> Value:
    """The row blocks of the gates in our order; a refittable engine does that again with other weights."""
    rows = x.dims[0] // len(order)
    if list(order) == list(range(len(order))):
        return x
    with net.unfolded() if net.keeps_weights else nullcontext():
        return layers.concatenate(net, [layers.along(net, x, 0, rows * gate, rows) for gate in order], 0)
