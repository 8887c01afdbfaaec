"""LSTMs whose products are of integers, with ranges that the run finds."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.frontend.importing import layers
from mlirt.frontend.importing.network import Network, Value
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.frontend.onnx.integer_sums import integer_product
from mlirt.frontend.onnx.node import Node
from mlirt.frontend.onnx.ops_quantization import dynamically_quantized
from mlirt.frontend.onnx.ops_recurrent import Weights, biases, of_direction, recurrent_layers
from mlirt.frontend.onnx.quantized import is_zero


@onnx_op("DynamicQuantizeLSTM", domain="com.microsoft")
def quantized_lstm(net: Network, node: Node) -> Sequence[Value]:
    """An LSTM whose input is rounded to int8 over its range, and the hidden state of a sequence before each step.

    Where there are several sequences, onnxruntime finds one range for those of a thread: with how many threads it runs
    decides which numbers it gives. Here each sequence has its own.
    """
    return recurrent_layers(net, node, "LSTM", _weights)


def _weights(net: Network, node: Node, x: Value, number: int) -> Weights:
    """Weights [E, 4 H] and recurrent weights [H, 4 H] of bytes, which have scales and zero points."""
    if node.optional(8) is None or node.optional(10) is None:
        raise node.invalid("expected scales of the weights and the recurrent weights")
    weights, recurrent, scale, recurrent_scale = (of_direction(net, node.input(k), number) for k in (1, 2, 8, 10))
    zero, recurrent_zero = (
        None if node.optional(k) is None else of_direction(net, node.input(k), number) for k in (9, 11)
    )
    steps, size, step_zero = dynamically_quantized(net, node, x)
    exact = layers.cast(net, integer_product(net, node, steps, weights, step_zero, zero), "float32")
    projected = layers.binary(net, "prod", exact, layers.binary(net, "prod", size, scale))
    bias, recurrent_bias = biases(net, node, number, recurrent.dims[1])
    if bias is not None and recurrent_bias is not None:
        recurrent_bias = layers.binary(net, "sum", bias, recurrent_bias)
    return Weights(
        projected,
        layers.transpose(net, _centred(net, recurrent, recurrent_zero), [1, 0]),
        recurrent_bias=recurrent_bias,
        scale=layers.expand(net, layers.with_rank(net, recurrent_scale, 1), [recurrent.dims[1]]),
    )


def _centred(net: Network, weights: Value, zero: Value | None) -> Value:
    """Bytes minus their zero points, as int16 where int8 does not hold them for certain."""
    is_plain = zero is None or is_zero(zero)
    if is_plain and weights.element_name == "int8":
        return weights
    wide = layers.cast(net, weights, "int16")
    return wide if is_plain or zero is None else layers.binary(net, "sub", wide, layers.cast(net, zero, "int16"))
