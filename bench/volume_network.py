"""3D-UNet as an ONNX graph: a network that labels each voxel of a window, with the sizes of MLPerf Inference's.

Four times two convolutions and a step down, two at the bottom, and as many on the way up, each level with what the way
down had there. Weights are random and seeded, and keep activations of order one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import onnx
from graph_writer import GraphWriter, floats

CHANNELS = (32, 64, 128, 256, 320, 320)
CLASSES = 3


def unet3d(
    batch: int | str = "batch", seed: int = 0, window: int = 128, channels: Sequence[int] = CHANNELS
) -> onnx.ModelProto:
    """Windows [batch, 1, w, w, w] to the classes' scores [batch, 3, w, w, w]; w is a multiple of 2^(levels - 1)."""
    write = VolumeWriter(seed)
    x, inputs, skipped = "input", 1, list[str]()
    for level, count in enumerate(channels):
        x = write.block(x, (inputs, count), f"down{level}.0", 2 if level else 1)
        x = write.block(x, (count, count), f"down{level}.1")
        skipped.append(x)
        inputs = count
    for level in range(len(channels) - 2, -1, -1):
        count = channels[level]
        x = write.larger(x, (inputs, count), f"up{level}")
        x = write.node("Concat", [x, skipped[level]], axis=1)
        x = write.block(x, (2 * count, count), f"up{level}.0")
        x = write.block(x, (count, count), f"up{level}.1")
        inputs = count
    write.scores(x, inputs)
    shape = (window,) * 3
    return write.model("unet3d", [floats("input", batch, 1, *shape)], [floats("output", batch, CLASSES, *shape)])


class VolumeWriter(GraphWriter):
    """Adds the parts of a network of volumes."""

    def block(self, x: str, channels: tuple[int, int], name: str, stride: int = 1) -> str:
        """Convolution, instance normalization, ReLU."""
        inputs, outputs = channels
        weight = self.normal(f"{name}.weight", (outputs, inputs, 3, 3, 3), math.sqrt(2.0 / (27 * inputs)))
        x = self.node("Conv", [x, weight], name, kernel_shape=[3] * 3, strides=[stride] * 3, pads=[1] * 6)
        scale = self.uniform(f"{name}.norm.weight", (outputs,), 0.9, 1.1)
        shift = self.normal(f"{name}.norm.bias", (outputs,), 0.1)
        return self.node("Relu", [self.node("InstanceNormalization", [x, scale, shift], epsilon=1e-5)])

    def larger(self, x: str, channels: tuple[int, int], name: str) -> str:
        """Twice as long in each direction, by a transposed convolution."""
        weight = self.normal(f"{name}.weight", (*channels, 2, 2, 2), math.sqrt(1.0 / channels[0]))
        shift = self.normal(f"{name}.bias", (channels[1],), 0.1)
        return self.node("ConvTranspose", [x, weight, shift], name, kernel_shape=[2] * 3, strides=[2] * 3)

    def scores(self, x: str, channels: int) -> None:
        """A score of each class for each voxel."""
        weight = self.normal("last.weight", (CLASSES, channels, 1, 1, 1), math.sqrt(1.0 / channels))
        shift = self.normal("last.bias", (CLASSES,), 0.1)
        self.node("Conv", [x, weight, shift], "output", kernel_shape=[1] * 3)
