"""Random layers on sequences [batch, length, width]."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from random_layers import Value, Writer

_WORDS = 500


def sequences(writer: Writer) -> tuple[Value, dict[tuple[str, int], str]]:
    """Vectors or words; with them the names of the dimensions that may be dynamic."""
    batch, length, width = writer.batch(), writer.between(1, 130), writer.one_of([4, 8, 12, 16]) * writer.between(2, 16)
    dynamic = {("x", 0): "batch", ("x", 1): "length"}
    if writer.chance(0.5):
        return writer.input("x", writer.random.standard_normal((batch, length, width))), dynamic
    words = writer.input("x", writer.random.integers(0, _WORDS, (batch, length)))
    return writer.node("Gather", [writer.normal((_WORDS, width), 1.0), words], (batch, length, width)), dynamic


def normalised(writer: Writer, x: Value) -> Value:
    """Layer normalisation, or that of root mean squares."""
    width = x.shape[2]
    scale = writer.normal((width,), 0.1, 1.0)
    if writer.chance(0.6):
        return writer.node("LayerNormalization", [x, scale, writer.normal((width,), 0.1)], x.shape, axis=-1)
    squares = writer.node("Mul", [x, x], x.shape)
    mean = writer.node("ReduceMean", [squares], (*x.shape[:2], 1), axes=[-1], keepdims=1)
    safe = writer.node("Add", [mean, writer.constant(np.array(1e-3, np.float32))], mean.shape)
    root = writer.node("Sqrt", [safe], mean.shape)
    return writer.node("Mul", [writer.node("Div", [x, root], x.shape), scale], x.shape)


def projected(writer: Writer, x: Value, outputs: int = 0) -> Value:
    """A product with a known matrix, and perhaps a bias."""
    width, outputs = x.shape[2], outputs or writer.channels()
    shape = (*x.shape[:2], outputs)
    y = writer.node("MatMul", [x, writer.normal((width, outputs), width**-0.5)], shape)
    return writer.node("Add", [y, writer.normal((outputs,), 0.1)], shape) if writer.chance(0.7) else y


def activated(writer: Writer, x: Value) -> Value:
    return writer.activation(projected(writer, x))


def mixed(writer: Writer, x: Value) -> Value:
    """The two products of a transformer's layer, beside a way around them."""
    inner = projected(writer, x, writer.channels())
    y = projected(writer, writer.activation(inner), x.shape[2])
    return normalised(writer, writer.node("Add", [x, y], x.shape))


def gated(writer: Writer, x: Value) -> Value:
    """A product times a function of another one, as language models have it."""
    hidden = writer.channels()
    gate, up = projected(writer, x, hidden), projected(writer, x, hidden)
    gate = writer.node("Mul", [gate, writer.node("Sigmoid", [gate], gate.shape)], gate.shape)
    return projected(writer, writer.node("Mul", [gate, up], gate.shape), x.shape[2])


def attended(writer: Writer, x: Value) -> Value:
    """Attention with several heads, perhaps fewer of keys and values; behind it a way around and a normalisation."""
    batch, length, width = x.shape
    size = writer.one_of([8, 16, 24, 32, 40, 64])
    heads = writer.between(1, 6)
    shared = writer.one_of([n for n in range(1, heads + 1) if heads % n == 0]) if writer.chance(0.3) else heads
    query = _heads(writer, projected(writer, x, heads * size), heads)
    key = _repeated(writer, _heads(writer, projected(writer, x, shared * size), shared), heads)
    value = _repeated(writer, _heads(writer, projected(writer, x, shared * size), shared), heads)
    transposed = writer.node("Transpose", [key], (batch, heads, size, length), perm=[0, 1, 3, 2])
    scores = writer.node("MatMul", [query, transposed], (batch, heads, length, length))
    scores = writer.node("Mul", [scores, writer.constant(np.array(size**-0.5, np.float32))], scores.shape)
    weights = writer.node("Softmax", [scores], scores.shape, axis=-1)
    found = writer.node("MatMul", [weights, value], (batch, heads, length, size))
    found = writer.node("Transpose", [found], (batch, length, heads, size), perm=[0, 2, 1, 3])
    found = writer.node("Reshape", [found, writer.integers(0, 0, heads * size)], (batch, length, heads * size))
    return normalised(writer, writer.node("Add", [x, projected(writer, found, width)], x.shape))


def _heads(writer: Writer, x: Value, heads: int) -> Value:
    batch, length, width = x.shape
    parts = writer.node(
        "Reshape", [x, writer.integers(0, 0, heads, width // heads)], (batch, length, heads, width // heads)
    )
    return writer.node("Transpose", [parts], (batch, heads, length, width // heads), perm=[0, 2, 1, 3])


def _repeated(writer: Writer, x: Value, heads: int) -> Value:
    """Each head of keys or values as often as there are queries for it."""
    batch, given, length, size = x.shape
    if given == heads:
        return x
    order = writer.constant(np.repeat(np.arange(given), heads // given))
    return writer.node("Gather", [x, order], (batch, heads, length, size), axis=1)


def joined(writer: Writer, x: Value) -> Value:
    """Several products of the same sequence side by side."""
    parts = [projected(writer, x, writer.between(3, 90)) for _ in range(writer.between(2, 3))]
    width = sum(part.shape[2] for part in parts)
    return writer.node("Concat", parts, (*x.shape[:2], width), axis=2)


def halved(writer: Writer, x: Value) -> Value:
    """A part of each vector times another part."""
    half = x.shape[2] // 2
    parts = [
        writer.node("Slice", [x, *map(writer.integers, bounds)], (*x.shape[:2], half))
        for bounds in ((0, half, 2), (half, 2 * half, 2))
    ]
    return normalised(writer, writer.node("Add", [parts[0], writer.activation(parts[1])], parts[0].shape))


def along(writer: Writer, x: Value) -> Value:
    """A convolution along the sequence."""
    batch, length, width = x.shape
    taps, group = writer.one_of([1, 3, 5]), width if writer.chance(0.4) else 1
    weights = writer.normal((width, width // group, taps), (1 / (width // group * taps)) ** 0.5)
    y = writer.node("Transpose", [x], (batch, width, length), perm=[0, 2, 1])
    how = {"kernel_shape": [taps], "pads": [taps // 2] * 2, "group": group}
    y = writer.activation(writer.node("Conv", [y, weights], y.shape, **how))
    return writer.node("Transpose", [y], x.shape, perm=[0, 2, 1])


def summarised(writer: Writer, x: Value) -> Value:
    """A further output: probabilities from the mean or the maximum of the sequence. The sequence goes on."""
    batch, _, width = x.shape
    kind = writer.one_of(["ReduceMean", "ReduceMax"])
    mean = writer.node(kind, [x], (batch, width), axes=[1], keepdims=0)
    classes = writer.between(2, 70)
    y = writer.node("Gemm", [mean, writer.normal((width, classes), width**-0.5)], (batch, classes))
    writer.also_returned.append(writer.node("Softmax", [y], y.shape, axis=-1))
    return x


SEQUENCE_LAYERS: Sequence[tuple[Callable[[Writer, Value], Value], float]] = (
    (activated, 2),
    (mixed, 2),
    (attended, 2),
    (gated, 1),
    (joined, 1),
    (along, 1),
    (normalised, 0.7),
    (halved, 0.7),
    (summarised, 0.7),
)
"""Each with how often it is drawn."""
