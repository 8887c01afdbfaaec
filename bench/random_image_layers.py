"""Random layers on images [batch, channels, height, width]."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from random_layers import Value, Writer

_SMALL = 12  # pixels: no layer makes smaller images still smaller


def images(writer: Writer) -> tuple[Value, dict[tuple[str, int], str]]:
    """An input and a first convolution; with them the names of the dimensions that may be dynamic."""
    height, width = (writer.between(17, 72) for _ in range(2))
    x = writer.input("x", writer.random.standard_normal((writer.batch(), writer.one_of([1, 3, 4, 5]), height, width)))
    return convolution(writer, x), {("x", 0): "batch", ("x", 2): "height", ("x", 3): "width"}


def convolution(writer: Writer, x: Value) -> Value:
    """A convolution of any kind, perhaps with a normalisation and an activation behind it."""
    inputs, outputs = x.shape[1], writer.channels()
    group = 1
    if writer.chance(0.25):
        group, outputs = inputs, inputs * (2 if inputs < 64 and writer.chance(0.2) else 1)
    elif writer.chance(0.2):
        group = writer.one_of([n for n in range(1, inputs + 1) if inputs % n == 0])
        outputs = group * max(1, outputs // group)
    return _convolved(writer, x, outputs, group, writer.one_of([1, 1, 3, 3, 3, 5, 7]))


def _convolved(writer: Writer, x: Value, outputs: int, group: int, taps: int) -> Value:
    batch, inputs, height, width = x.shape
    stride = 2 if min(height, width) > _SMALL and writer.chance(0.3) else 1
    dilation = 2 if taps == 3 and min(height, width) > _SMALL and writer.chance(0.15) else 1
    pad = dilation * (taps // 2)
    sizes = [(n + 2 * pad - dilation * (taps - 1) - 1) // stride + 1 for n in (height, width)]
    depth = inputs // group * taps * taps
    weights = [writer.normal((outputs, inputs // group, taps, taps), (2 / depth) ** 0.5)]
    bias = [writer.normal((outputs,), 0.1)] if writer.chance(0.5) else []
    geometry = {"strides": [stride] * 2, "dilations": [dilation] * 2, "pads": [pad] * 4, "group": group}
    y = writer.node("Conv", [x, *weights, *bias], (batch, outputs, *sizes), kernel_shape=[taps] * 2, **geometry)
    return writer.activation(normalised(writer, y) if writer.chance(0.5) else y)


def normalised(writer: Writer, x: Value) -> Value:
    """Batch normalisation."""
    width = (x.shape[1],)
    variance = writer.constant(writer.random.uniform(0.5, 1.5, width).astype(np.float16).astype(np.float32))
    scales = [writer.normal(width, 0.1, 1.0), writer.normal(width, 0.1), writer.normal(width, 0.1), variance]
    return writer.node("BatchNormalization", [x, *scales], x.shape)


def transposed(writer: Writer, x: Value) -> Value:
    """A transposed convolution that doubles small images."""
    batch, inputs, height, width = x.shape
    if max(height, width) > 40:
        return pooled(writer, x)
    outputs = min(96, writer.channels())
    weights = writer.normal((inputs, outputs, 2, 2), (1 / inputs) ** 0.5)
    shape = batch, outputs, 2 * height, 2 * width
    return writer.node("ConvTranspose", [x, weights], shape, kernel_shape=[2, 2], strides=[2, 2])


def pooled(writer: Writer, x: Value) -> Value:
    """A maximum or mean over windows."""
    batch, channels, height, width = x.shape
    if min(height, width) <= _SMALL:
        return convolution(writer, x)
    taps, stride = writer.one_of([2, 3]), writer.one_of([1, 2, 2])
    pad = 1 if taps == 3 else 0
    sizes = [(n + 2 * pad - taps) // stride + 1 for n in (height, width)]
    kind = writer.one_of(["MaxPool", "AveragePool"])
    shape = batch, channels, *sizes
    return writer.node(kind, [x], shape, kernel_shape=[taps] * 2, strides=[stride] * 2, pads=[pad] * 4)


def resized(writer: Writer, x: Value) -> Value:
    """Images of twice the size, to the nearest or linear."""
    batch, channels, height, width = x.shape
    if max(height, width) > 40:
        return pooled(writer, x)
    scales = writer.constant(np.array([1, 1, 2, 2], np.float32))
    shape = batch, channels, 2 * height, 2 * width
    if writer.chance(0.5):
        how = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    else:
        how = {"mode": "linear", "coordinate_transformation_mode": "half_pixel"}
    return writer.node("Resize", [x, "", scales], shape, **how)


def residual(writer: Writer, x: Value) -> Value:
    """Two layers beside a way around them."""
    inner = _keeping(writer, _keeping(writer, x, writer.channels()), x.shape[1])
    half = writer.constant(np.array(0.5, np.float32))
    return writer.node("Add", [x, writer.node("Mul", [inner, half], x.shape)], x.shape)


def _keeping(writer: Writer, x: Value, outputs: int) -> Value:
    """A convolution that keeps the size of the images."""
    taps, inputs = writer.one_of([1, 3, 3, 5]), x.shape[1]
    weights = writer.normal((outputs, inputs, taps, taps), (2 / (inputs * taps * taps)) ** 0.5)
    shape = x.shape[0], outputs, *x.shape[2:]
    y = writer.node("Conv", [x, weights], shape, kernel_shape=[taps] * 2, pads=[taps // 2] * 4)
    return writer.activation(y)


def branches(writer: Writer, x: Value) -> Value:
    """Several convolutions of the same images, their channels one behind the other."""
    parts = [_keeping(writer, x, writer.between(5, 72)) for _ in range(writer.between(2, 4))]
    channels = sum(part.shape[1] for part in parts)
    return writer.node("Concat", parts, (x.shape[0], channels, *x.shape[2:]), axis=1)


def gated(writer: Writer, x: Value) -> Value:
    """Channels scaled by a function of their means, as squeeze-and-excitation does."""
    batch, channels = x.shape[:2]
    inner = max(4, channels // 4)
    mean = writer.node("GlobalAveragePool", [x], (batch, channels, 1, 1))
    down = writer.normal((inner, channels, 1, 1), (2 / channels) ** 0.5)
    up = writer.normal((channels, inner, 1, 1), (1 / inner) ** 0.5)
    hidden = writer.node("Relu", [writer.node("Conv", [mean, down], (batch, inner, 1, 1))], (batch, inner, 1, 1))
    gate = writer.node("Conv", [hidden, up], (batch, channels, 1, 1))
    return writer.node("Mul", [x, writer.node(writer.one_of(["Sigmoid", "HardSigmoid"]), [gate], gate.shape)], x.shape)


def channels_last(writer: Writer, x: Value) -> Value:
    """A normalisation over channels and a product, as ConvNeXt has them."""
    batch, channels, height, width = x.shape
    moved = batch, height, width, channels
    y = writer.node("Transpose", [x], moved, perm=[0, 2, 3, 1])
    y = writer.node(
        "LayerNormalization", [y, writer.normal((channels,), 0.1, 1.0), writer.normal((channels,), 0.1)], moved
    )
    outputs = writer.channels()
    wide = batch, height, width, outputs
    y = writer.node("MatMul", [y, writer.normal((channels, outputs), channels**-0.5)], wide)
    y = writer.gelu(writer.node("Add", [y, writer.normal((outputs,), 0.1)], wide))
    return writer.node("Transpose", [y], (batch, outputs, height, width), perm=[0, 3, 1, 2])


def cropped(writer: Writer, x: Value) -> Value:
    """A part of the channels, or images without their border."""
    batch, channels, height, width = x.shape
    if channels > 8 and writer.chance(0.5):
        first = writer.between(0, channels // 3)
        bounds = [writer.integers(one) for one in (first, channels, 1)]
        return writer.node("Slice", [x, *bounds], (batch, channels - first, height, width))
    if min(height, width) <= _SMALL:
        return residual(writer, x)
    bounds = [writer.integers(1, 0), writer.integers(1 << 60, -1), writer.integers(2, 3)]
    return writer.node("Slice", [x, *bounds], (batch, channels, height - 1, width - 1))


def classified(writer: Writer, x: Value) -> Value:
    """A further output: logits of the means. The images go on."""
    batch, channels = x.shape[:2]
    classes = writer.between(2, 130)
    mean = writer.node("ReduceMean", [x], (batch, channels), axes=[2, 3], keepdims=0)
    weights = [writer.normal((classes, channels), channels**-0.5), writer.normal((classes,), 0.1)]
    writer.also_returned.append(writer.node("Gemm", [mean, *weights], (batch, classes), transB=1))
    return x


IMAGE_LAYERS: Sequence[tuple[Callable[[Writer, Value], Value], float]] = (
    (convolution, 5),
    (residual, 2),
    (pooled, 1),
    (branches, 1),
    (gated, 1),
    (channels_last, 1),
    (transposed, 0.7),
    (resized, 0.7),
    (cropped, 0.7),
    (classified, 0.7),
)
"""Each with how often it is drawn."""
