"""RNN, LSTM and GRU: one `trt.rnn` for each direction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.trt.activation import ActivationKind, ActivationKindAttr
from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.node import Node

_CELLS = {"RNN": "simple", "LSTM": "lstm", "GRU": "gru"}
_GATES = {"RNN": 1, "LSTM": 4, "GRU": 3}
_DEFAULTS = {"RNN": ["tanh"], "LSTM": ["sigmoid", "tanh", "tanh"], "GRU": ["sigmoid", "tanh"]}
# Our name of an activation, and alpha and beta where the model gives none; None: the function has no such number.
_ACTIVATIONS: dict[str, tuple[str, float | None, float | None]] = {
    "relu": ("relu", None, None),
    "tanh": ("tanh", None, None),
    "sigmoid": ("sigmoid", None, None),
    "softsign": ("softsign", None, None),
    "leakyrelu": ("leaky_relu", 0.01, None),
    "thresholdedrelu": ("thresholded_relu", 1.0, None),
    "scaledtanh": ("scaled_tanh", 1.0, 1.0),
    "hardsigmoid": ("hard_sigmoid", 0.2, 0.5),
    "elu": ("elu", 1.0, None),
}
_DIRECTIONS = {"forward": [False], "reverse": [True], "bidirectional": [False, True]}


_RATIONAL = {
    ActivationKind.SIGMOID: ActivationKind.RATIONAL_SIGMOID,
    ActivationKind.TANH: ActivationKind.RATIONAL_TANH,
}


@dataclass(frozen=True)
class Weights:
    """What a direction computes with: its input, recurrent weights [G H, H] and biases [G H].

    The input is [T, N, E], or [T, N, G H] where there are no `weights` [G H, E]. A `scale` [G H] belongs to recurrent
    weights of integers.
    """

    x: Value
    recurrent: Value
    weights: Value | None = None
    bias: Value | None = None
    recurrent_bias: Value | None = None
    scale: Value | None = None

    def function(self, kind: ActivationKind) -> ActivationKind:
        """The activation for a kind: what is rounded to integers in the next step has the same bits everywhere."""
        return kind if self.scale is None else _RATIONAL.get(kind, kind)


WeightsOf = Callable[[Network, Node, Value, int], Weights]


@onnx_op("RNN", "LSTM", "GRU")
def recurrent(net: Network, node: Node) -> Sequence[Value]:
    """Outputs [T, D, N, H] and the last states [D, N, H]; with `layout` 1 the batch comes first in all of them."""
    if node.opset < 7:
        raise node.unsupported("before opset 7 its biases and sequence lengths mean something else; convert the model")
    return recurrent_layers(net, node, node.op_type, _float_weights)


def recurrent_layers(net: Network, node: Node, kind: str, weights_of: WeightsOf) -> Sequence[Value]:
    """The results of a node that has a layer for each direction."""
    batch_first = bool(node.integer("layout", 0))
    x = node.input(0)
    if x.rank != 3:
        raise node.invalid(f"expected an input of 3 dimensions, but it has {x.rank}")
    directions = _DIRECTIONS.get(node.text("direction", "forward"))
    if directions is None:
        raise node.invalid(f"there is no direction {node.text('direction')!r}")
    if batch_first:
        x = layers.transpose(net, x, [1, 0, 2])
    results = [
        _direction(net, node, kind, weights_of(net, node, x, number), number, backwards, batch_first)
        for number, backwards in enumerate(directions)
    ]
    first, *states = (layers.concatenate(net, list(parts), axis) for parts, axis in _stacked(net, results))
    if batch_first:
        first = layers.transpose(net, first, [2, 0, 1, 3])
        states = [layers.transpose(net, state, [1, 0, 2]) for state in states]
    return [first, *states]


def _stacked(net: Network, results: Sequence[Sequence[Value]]) -> list[tuple[list[Value], int]]:
    """For each result the parts of all directions, and the axis along which they are joined."""
    groups: list[tuple[list[Value], int]] = []
    for number, parts in enumerate(zip(*results, strict=True)):
        axis = 1 if number == 0 else 0
        groups.append(([layers.unsqueeze(net, part, [axis]) for part in parts], axis))
    return groups


def _float_weights(net: Network, node: Node, x: Value, number: int) -> Weights:
    weights, recurrent = (of_direction(net, node.input(k), number) for k in (1, 2))
    bias, recurrent_bias = biases(net, node, number, recurrent.dims[0])
    return Weights(x, recurrent, weights, bias, recurrent_bias)


def biases(net: Network, node: Node, number: int, rows: Dim) -> tuple[Value | None, Value | None]:
    """The biases of a direction for its input and for its hidden state."""
    if node.optional(3) is None:
        return None, None
    both = of_direction(net, node.input(3), number)
    return layers.along(net, both, 0, 0, rows), layers.along(net, both, 0, rows, rows)


def of_direction(net: Network, value: Value, number: int) -> Value:
    """The part of a weight that belongs to a direction, its first dimension."""
    return layers.squeeze(net, layers.along(net, value, 0, number, 1), [0])


def _direction(
    net: Network, node: Node, kind: str, given: Weights, number: int, backwards: bool, batch_first: bool
) -> Sequence[Value]:
    size = node.integer("hidden_size", 0) or given.recurrent.dims[-1]
    if not isinstance(size, int) or not all(isinstance(length, int) for length in given.recurrent.dims):
        raise node.unsupported(
            "the lengths of its recurrent weights are dynamic: give them when building (input_shapes), or as constants"
        )
    rows = _GATES[kind] * size
    if given.recurrent.dims != (rows, size):
        raise node.invalid(f"expected recurrent weights [{rows}, {size}], but they are {list(given.recurrent.dims)}")
    lengths = node.optional(4)
    if lengths is not None:
        lengths = layers.cast(net, lengths, "int32")
    hidden, cell = (_state(net, node, k, number, batch_first) for k in (5, 6))
    peepholes = node.optional(7) if kind == "LSTM" else None
    kinds, alphas, betas = _functions(node, number, kind)
    results = net.emit_many(
        "rnn",
        [
            *(given.x, given.recurrent, given.weights, given.bias, given.recurrent_bias),
            *(hidden, cell if kind == "LSTM" else None, lengths),
            *(None if peepholes is None else of_direction(net, peepholes, number), given.scale),
        ],
        3 if kind == "LSTM" else 2,
        cell=_CELLS[kind],
        activations=ArrayAttr([ActivationKindAttr(given.function(ActivationKind(one))) for one in kinds]),
        alphas=alphas,
        betas=betas,
        reverse=backwards,
        linear_before_reset=bool(node.integer("linear_before_reset", 0)),
        input_forget=bool(node.integer("input_forget", 0)),
        **({"clip": node.real("clip")} if node.has("clip") else {}),
    )
    return results


def _state(net: Network, node: Node, k: int, number: int, batch_first: bool) -> Value | None:
    state = node.optional(k)
    if state is None:
        return None
    if batch_first:
        state = layers.transpose(net, state, [1, 0, 2])
    return of_direction(net, state, number)


def _functions(node: Node, number: int, op_type: str) -> tuple[list[str], list[float], list[float]]:
    """Kinds, alphas and betas of a direction's activations."""
    default = _DEFAULTS[op_type]
    count = len(default)
    attribute = node.attributes.get("activations")
    names = [text.decode("utf-8", "replace") for text in attribute.strings] if attribute is not None else []
    names = names or default * (number + 1)
    given_alphas, given_betas = (iter(node.reals(name, [])) for name in ("activation_alpha", "activation_beta"))
    found: list[tuple[str, float, float]] = []
    for name in names:
        known = _ACTIVATIONS.get(name.lower().replace("_", ""))
        if known is None:
            raise node.unsupported(f"it has the activation {name!r}; known are {', '.join(sorted(_ACTIVATIONS))}")
        kind, alpha, beta = known
        alpha = 0.0 if alpha is None else next(given_alphas, alpha)
        beta = 0.0 if beta is None else next(given_betas, beta)
        found.append((kind, float(np.float32(alpha)), float(np.float32(beta))))
    mine = found[number * count : (number + 1) * count]
    if len(mine) != count:
        raise node.invalid(f"expected {count} activations for each direction, but it names {len(names)} in all")
    return [kind for kind, _, _ in mine], [alpha for _, alpha, _ in mine], [beta for _, _, beta in mine]
