"""The networks of the part `activations` of bench/growth.py, whose memory is mostly activations; seeded weights."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx
from convolutional_networks import ConvolutionalWriter, resnet50
from graph_writer import floats
from transformer_network import BertSizes, bert_base


def unet(batch: int | str, size: int = 256, width: int = 32, depth: int = 4, seed: int = 0) -> onnx.ModelProto:
    """Images of 3 channels down to 1 / 2^depth and up again, joined on the way with what they were on the way down."""
    write = ConvolutionalWriter(seed)
    x, channels, skipped = "input", 3, list[str]()
    for level in range(depth + 1):
        x = _twice(write, x, (channels, width << level), f"down{level}")
        channels = width << level
        if level < depth:
            skipped.append(x)
            x = write.node("MaxPool", [x], kernel_shape=[2, 2], strides=[2, 2])
    for level in reversed(range(depth)):
        weight = write.normal(f"up{level}.weight", (channels, channels // 2, 2, 2), channels**-0.5)
        up = write.node("ConvTranspose", [x, weight], kernel_shape=[2, 2], strides=[2, 2])
        x = _twice(write, write.node("Concat", [skipped[level], up], axis=1), (channels, channels // 2), f"up{level}")
        channels //= 2
    last = write.node("Sigmoid", [write.convolution(x, (channels, 2), ("out", "out_norm"), 1)], "output")
    return write.model("unet", [floats("input", batch, 3, size, size)], [floats(last, batch, 2, size, size)])


def densenet(batch: int | str, blocks: tuple[int, ...] = (6, 12, 24, 16), seed: int = 0) -> onnx.ModelProto:
    """DenseNet-121: every layer reads all results before it in its block."""
    write, growth, channels = ConvolutionalWriter(seed), 32, 64
    x = write.convolution("input", (3, channels), ("conv0", "norm0"), 7, 2, activation="relu")
    x = write.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    for number, layers in enumerate(blocks):
        for layer in range(layers):
            name = f"block{number}.{layer}"
            y = write.node("Relu", [write.normalization(x, channels, f"{name}.norm")])
            y = write.convolution(y, (channels, 4 * growth), (f"{name}.conv1", f"{name}.norm1"), 1, activation="relu")
            weight = write.normal(f"{name}.conv2.weight", (growth, 4 * growth, 3, 3), (36 * growth) ** -0.5)
            y = write.node("Conv", [y, weight], kernel_shape=[3, 3], pads=[1] * 4)
            x, channels = write.node("Concat", [x, y], axis=1), channels + growth
        if number < len(blocks) - 1:
            y = write.node("Relu", [write.normalization(x, channels, f"between{number}.norm")])
            weight = write.normal(f"between{number}.weight", (channels // 2, channels, 1, 1), channels**-0.5)
            x, channels = write.node("Conv", [y, weight], kernel_shape=[1, 1]), channels // 2
            x = write.node("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2])
    x = write.node("Relu", [write.normalization(x, channels, "last.norm")])
    result = write.head(x, channels, "classifier")
    return write.model("densenet", [floats("input", batch, 3, 224, 224)], [floats(result, batch, 1000)])


def transformer(batch: int | str) -> onnx.ModelProto:
    """Three layers of BERT base on 384 tokens."""
    return bert_base(batch, 0, BertSizes(layers=3, length=384, vocabulary=1000))


NETWORKS: Mapping[str, tuple[int, Callable[[int | str], onnx.ModelProto]]] = {
    "ResNet-50": (8, resnet50),
    "UNet, 256 x 256": (2, unet),
    "DenseNet-121": (8, densenet),
    "transformer, 384 tokens": (4, transformer),
}
"""The batch and the network."""


def _twice(write: ConvolutionalWriter, x: str, channels: tuple[int, int], name: str) -> str:
    x = write.convolution(x, channels, (f"{name}.conv1", f"{name}.norm1"), 3, activation="relu")
    both = (channels[1], channels[1])
    return write.convolution(x, both, (f"{name}.conv2", f"{name}.norm2"), 3, activation="relu")
