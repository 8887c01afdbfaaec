"""ResNet-18, ResNet-50 and MobileNetV2 as ONNX graphs, layer for layer those of torch_networks.py, with random weights.

Weights keep activations of order one from the first layer to the last, so that errors mean what they mean in a trained
network: a convolution followed by an activation has the variance 2 / inputs, any other 1 / inputs, and the last
normalization of a residual branch adds only a part.
"""

from __future__ import annotations

import math

import onnx
from graph_writer import GraphWriter, floats

CLASSES = 1000


class ConvolutionalWriter(GraphWriter):
    """Adds convolutions with their normalization, and the head."""

    def convolution(
        self,
        x: str,
        channels: tuple[int, int],
        names: tuple[str, str],
        kernel: int = 1,
        stride: int = 1,
        groups: int = 1,
        activation: str = "",
        gain: float = 1.0,
    ) -> str:
        """Convolution, batch normalization, activation; `names` are those of the first two."""
        inputs, outputs = channels
        fan_in = inputs // groups * kernel * kernel
        deviation = math.sqrt((2.0 if activation else 1.0) / fan_in)
        weight = self.normal(f"{names[0]}.weight", (outputs, inputs // groups, kernel, kernel), deviation)
        x = self.node(
            "Conv",
            [x, weight],
            names[0],
            kernel_shape=[kernel] * 2,
            strides=[stride] * 2,
            pads=[kernel // 2] * 4,
            group=groups,
        )
        x = self.normalization(x, outputs, names[1], gain)
        if activation == "relu6":
            low, high = self.scalar("zero", 0.0), self.scalar("six", 6.0)
            return self.node("Clip", [x, low, high])
        return self.node("Relu", [x]) if activation else x

    def normalization(self, x: str, channels: int, name: str, gain: float = 1.0) -> str:
        given = [
            self.uniform(f"{name}.weight", (channels,), 0.9 * gain, 1.1 * gain),
            self.normal(f"{name}.bias", (channels,), 0.1),
            self.normal(f"{name}.running_mean", (channels,), 0.1),
            self.uniform(f"{name}.running_var", (channels,), 0.9, 1.1),
        ]
        return self.node("BatchNormalization", [x, *given], name, epsilon=1e-5)

    def head(self, x: str, channels: int, name: str) -> str:
        """Mean over the picture and the linear classifier."""
        x = self.node("Flatten", [self.node("GlobalAveragePool", [x])])
        weight = self.normal(f"{name}.weight", (CLASSES, channels), math.sqrt(1 / channels))
        bias = self.normal(f"{name}.bias", (CLASSES,), 0.1)
        return self.node("Gemm", [x, weight, bias], "output", transB=1)


def resnet50(batch: int | str = "batch", seed: int = 0) -> onnx.ModelProto:
    """Version 1.5, with the stride in the 3x3 convolution: input [batch, 3, 224, 224], output [batch, 1000]."""
    write = ConvolutionalWriter(seed)
    x = write.convolution("input", (3, 64), ("conv1", "bn1"), 7, 2, activation="relu")
    x = write.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        width = 64 << stage
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            x = _bottleneck(write, x, (channels, width), f"layer{stage + 1}.{block}", stride)
            channels = 4 * width
    write.head(x, channels, "fc")
    return write.model("resnet50", [floats("input", batch, 3, 224, 224)], [floats("output", batch, CLASSES)])


def resnet18(batch: int | str = "batch", seed: int = 0, first: int = 64) -> onnx.ModelProto:
    """Input [batch, 3, 224, 224], output [batch, 1000]; `first`: the channels of the first layers."""
    write = ConvolutionalWriter(seed)
    x = write.convolution("input", (3, first), ("conv1", "bn1"), 7, 2, activation="relu")
    x = write.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
    channels = first
    for stage in range(4):
        width = first << stage
        for block in range(2):
            stride = 2 if stage and not block else 1
            x = _basic_block(write, x, (channels, width), f"layer{stage + 1}.{block}", stride)
            channels = width
    write.head(x, channels, "fc")
    return write.model("resnet18", [floats("input", batch, 3, 224, 224)], [floats("output", batch, CLASSES)])


def _basic_block(write: ConvolutionalWriter, x: str, channels: tuple[int, int], name: str, stride: int) -> str:
    inputs, width = channels
    y = write.convolution(x, (inputs, width), (f"{name}.conv1", f"{name}.bn1"), 3, stride, activation="relu")
    y = write.convolution(y, (width, width), (f"{name}.conv2", f"{name}.bn2"), 3, gain=0.4)
    if stride > 1 or inputs != width:
        x = write.convolution(x, channels, (f"{name}.downsample.0", f"{name}.downsample.1"), stride=stride)
    return write.node("Relu", [write.node("Add", [y, x])])


def _bottleneck(write: ConvolutionalWriter, x: str, channels: tuple[int, int], name: str, stride: int) -> str:
    inputs, width = channels
    y = write.convolution(x, (inputs, width), (f"{name}.conv1", f"{name}.bn1"), activation="relu")
    y = write.convolution(y, (width, width), (f"{name}.conv2", f"{name}.bn2"), 3, stride, activation="relu")
    y = write.convolution(y, (width, 4 * width), (f"{name}.conv3", f"{name}.bn3"), gain=0.4)
    if stride > 1 or inputs != 4 * width:
        names = (f"{name}.downsample.0", f"{name}.downsample.1")
        x = write.convolution(x, (inputs, 4 * width), names, stride=stride)
    return write.node("Relu", [write.node("Add", [y, x])])


# Expansion, channels, blocks, stride of the first: table 2 of the paper.
MOBILENET_STAGES = (
    (1, 16, 1, 1),
    (6, 24, 2, 2),
    (6, 32, 3, 2),
    (6, 64, 4, 2),
    (6, 96, 3, 1),
    (6, 160, 3, 2),
    (6, 320, 1, 1),
)


def mobilenet_v2(batch: int | str = "batch", seed: int = 0) -> onnx.ModelProto:
    """Width 1.0: input [batch, 3, 224, 224], output [batch, 1000]."""
    write = ConvolutionalWriter(seed)
    x = write.convolution("input", (3, 32), ("features.0.0", "features.0.1"), 3, 2, activation="relu6")
    channels, number = 32, 1
    for expansion, outputs, blocks, stride in MOBILENET_STAGES:
        for block in range(blocks):
            first = stride if block == 0 else 1
            x = _inverted_residual(write, x, (channels, expansion, outputs), f"features.{number}.conv", first)
            channels, number = outputs, number + 1
    names = (f"features.{number}.0", f"features.{number}.1")
    x = write.convolution(x, (channels, 1280), names, activation="relu6")
    write.head(x, 1280, "classifier.1")
    return write.model("mobilenet_v2", [floats("input", batch, 3, 224, 224)], [floats("output", batch, CLASSES)])


def _inverted_residual(write: ConvolutionalWriter, x: str, sizes: tuple[int, int, int], name: str, stride: int) -> str:
    inputs, expansion, outputs = sizes
    y, hidden, place = x, inputs * expansion, 0
    if expansion > 1:
        y = write.convolution(y, (inputs, hidden), (f"{name}.0.0", f"{name}.0.1"), activation="relu6")
        place = 1
    names = (f"{name}.{place}.0", f"{name}.{place}.1")
    y = write.convolution(y, (hidden, hidden), names, 3, stride, hidden, "relu6")
    names = (f"{name}.{place + 1}", f"{name}.{place + 2}")
    if stride > 1 or inputs != outputs:
        return write.convolution(y, (hidden, outputs), names)
    return write.node("Add", [x, write.convolution(y, (hidden, outputs), names, gain=0.5)])
