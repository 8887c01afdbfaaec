"""Recurrent layers with weights by gate, against their equations step by step (tensorrt-features.md#1.32a to 1.32c)."""

from __future__ import annotations

import numpy as np
import pytest
from layer_networks import Array, evaluate, new_network, output_of

import mlirt as trt
from mlirt.errors import InvalidModelError

BATCH, STEPS, WIDTH, HIDDEN = 2, 4, 3, 5
GATES = {
    "RELU": [trt.RNNGateType.INPUT],
    "TANH": [trt.RNNGateType.INPUT],
    "LSTM": [trt.RNNGateType.INPUT, trt.RNNGateType.OUTPUT, trt.RNNGateType.FORGET, trt.RNNGateType.CELL],
    "GRU": [trt.RNNGateType.UPDATE, trt.RNNGateType.RESET, trt.RNNGateType.HIDDEN],
}
Numbers = dict[tuple[trt.RNNGateType, bool], tuple[Array, Array]]


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def step(op: str, weights: Numbers, x: Array, h: Array, c: Array) -> tuple[Array, Array]:
    """The hidden and the cell state after one step."""

    def products(gate: trt.RNNGateType) -> tuple[Array, Array]:
        (w, wb), (r, rb) = weights[gate, True], weights[gate, False]
        return x @ w.T + wb, h @ r.T + rb

    sums = {gate.name: np.add(*products(gate)) for gate in GATES[op]}
    if op == "LSTM":
        c = sigmoid(sums["FORGET"]) * c + sigmoid(sums["INPUT"]) * np.tanh(sums["CELL"])
        return sigmoid(sums["OUTPUT"]) * np.tanh(c), c
    if op == "GRU":
        update, (ours, theirs) = sigmoid(sums["UPDATE"]), products(trt.RNNGateType.HIDDEN)
        return (1 - update) * np.tanh(ours + sigmoid(sums["RESET"]) * theirs) + update * h, c
    return (np.maximum(sums["INPUT"], 0) if op == "RELU" else np.tanh(sums["INPUT"])), c


def walk(op: str, weights: Numbers, x: Array, lengths: Array, h: Array, c: Array, back: bool) -> list[Array]:
    """The outputs of all steps [N, T, H] and the last states."""
    outputs = np.zeros((*x.shape[:2], HIDDEN))
    h, c = h.copy(), c.copy()
    for n, length in enumerate(lengths):
        for t in reversed(range(length)) if back else range(length):
            h[n], c[n] = step(op, weights, x[n, t], h[n], c[n])
            outputs[n, t] = h[n]
    return [outputs, h, c]


@pytest.mark.parametrize("op", GATES)
@pytest.mark.parametrize("both_ways", [False, True])
@pytest.mark.parametrize("skips", [False, True])
def test_two_layers(op: str, both_ways: bool, skips: bool) -> None:
    random = np.random.default_rng(11)
    ways, width = 2 if both_ways else 1, HIDDEN if skips else WIDTH
    x = random.standard_normal((BATCH, STEPS, width)).astype(np.float32)
    lengths = np.array([STEPS, 2], np.int32)
    network = new_network()
    tensor = network.add_input("x", trt.float32, x.shape)
    with pytest.warns(DeprecationWarning, match="Use add_loop instead"):
        layer = network.add_rnn_v2(tensor, 2, HIDDEN, STEPS, trt.RNNOperation[op])
    layer.direction = trt.RNNDirection.BIDIRECTION if both_ways else trt.RNNDirection.UNIDIRECTION
    layer.input_mode = trt.RNNInputMode.SKIP if skips else trt.RNNInputMode.LINEAR
    assert (layer.num_layers, layer.data_length, layer.hidden_size, layer.max_seq_length) == (2, width, HIDDEN, STEPS)
    feeds = {"x": x, "n": lengths}
    layer.seq_lengths = network.add_input("n", trt.int32, lengths.shape)
    states = [random.standard_normal((BATCH, 2 * ways, HIDDEN)).astype(np.float32) for _ in range(2)]
    feeds["h"] = states[0]
    layer.hidden_state = network.add_input("h", trt.float32, states[0].shape)
    if op == "LSTM":
        feeds["c"] = states[1]
        layer.cell_state = network.add_input("c", trt.float32, states[1].shape)

    expected, last = x.astype(np.float64), [np.zeros_like(states[0]), np.zeros_like(states[0])]
    for number in range(2):
        parts: list[Array] = []
        for way in range(ways):
            index = number * ways + way
            weights: Numbers = {}
            for gate in GATES[op]:
                for is_w, columns in ((True, expected.shape[-1]), (False, HIDDEN)):
                    matrix = random.standard_normal((HIDDEN, columns)).astype(np.float32) / 2
                    bias = random.standard_normal(HIDDEN).astype(np.float32)
                    weights[gate, is_w] = (np.eye(HIDDEN) if skips and is_w and number == 0 else matrix), bias
                    assert layer.set_weights_for_gate(index, gate, is_w, matrix)
                    assert layer.set_bias_for_gate(index, gate, is_w, bias)
            output, h, c = walk(op, weights, expected, lengths, states[0][:, index], states[1][:, index], way == 1)
            last[0][:, index], last[1][:, index] = h, c
            parts.append(output)
        expected = np.concatenate(parts, 2)
    for k in range(layer.num_outputs):
        network.mark_output(layer.get_output(k))
    found = evaluate(network, feeds)
    assert len(found) == (3 if op == "LSTM" else 2)
    for ours, theirs in zip(found, [expected, *last], strict=False):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)


def test_missing_weights() -> None:
    """tensorrt-features.md#1.32a."""
    network = new_network()
    x = network.add_input("x", trt.float32, (BATCH, STEPS, WIDTH))
    with pytest.warns(DeprecationWarning, match="Use add_loop instead"):
        layer = network.add_rnn_v2(x, 1, HIDDEN, STEPS, trt.RNNOperation.GRU)
    assert not layer.set_weights_for_gate(0, trt.RNNGateType.CELL, True, np.ones(1, np.float32))
    with pytest.raises(InvalidModelError, match="layer 0, gate UPDATE: weights of the input have count 0"):
        output_of(network, layer, {})
