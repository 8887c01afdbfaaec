"""RetinaNet as an ONNX graph from picture to boxes: ResNeXt-50 32x4d, a feature pyramid, two heads, decoding and NMS.

Layer for layer torchvision's definition with the sizes of MLPerf Inference: 800x800 pictures, 264 classes, 9 anchors of
each position, 1,000 candidates of each level, 300 detections of a picture. Weights are random and seeded. They keep
activations of order one, and the classes' bias and gain are such that some candidates are above the threshold, so that
NMS has work to do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from convolutional_networks import ConvolutionalWriter
from graph_writer import floats

_ANCHORS = 9
_STRIDES = (8, 16, 32, 64, 128)
_SPREAD = math.log(1000.0 / 16)
"""The most that a side of an anchor grows, as a logarithm."""


@dataclass(frozen=True)
class DetectorSizes:
    """The sizes of MLPerf's RetinaNet."""

    pixels: int = 800
    classes: int = 264
    blocks: tuple[int, ...] = (3, 4, 6, 3)
    width: int = 64
    """Channels of the stem; the groups' width follows from it."""
    groups: int = 32
    pyramid: int = 256
    """Channels of the pyramid and the heads."""
    candidates: int = 1000
    """Of each level, before NMS."""
    detections: int = 300
    """Of each picture."""


def retinanet(batch: int | str = "batch", seed: int = 0, sizes: DetectorSizes | None = None) -> onnx.ModelProto:
    """Pictures [batch, 3, pixels, pixels] to detections [batch, 300, 6].

    A detection is left, top, right, bottom in pixels, its score and its class; rows that are not used are 0.
    """
    sizes = sizes or DetectorSizes()
    write = DetectorWriter(seed, sizes)
    levels = write.pyramid(write.backbone("input"))
    boxes, scores, labels = write.candidates(levels)
    write.detections(boxes, scores, labels)
    inputs = [floats("input", batch, 3, sizes.pixels, sizes.pixels)]
    return write.model("retinanet", inputs, [floats("detections", batch, sizes.detections, 6)])


def anchors(pixels: int, stride: int) -> np.ndarray[tuple[int, int], np.dtype[np.float32]]:
    """Anchors of a level as [positions * 9, 4]: x and y of the centre, width, height."""
    count = math.ceil(pixels / stride)
    step = pixels // count
    base = [4.0 * stride * 2 ** (octave / 3) for octave in range(3)]
    shapes = [(size / math.sqrt(ratio), size * math.sqrt(ratio)) for ratio in (0.5, 1.0, 2.0) for size in base]
    rows, columns = np.meshgrid(np.arange(count) * step, np.arange(count) * step, indexing="ij")
    centres = np.stack([columns, rows], -1).reshape(-1, 1, 2).repeat(_ANCHORS, 1)
    sides = np.broadcast_to(np.array(shapes), (count * count, _ANCHORS, 2))
    return np.concatenate([centres, sides], -1).reshape(-1, 4).astype(np.float32)


class DetectorWriter(ConvolutionalWriter):
    """Adds the parts of a RetinaNet."""

    def __init__(self, seed: int, sizes: DetectorSizes) -> None:
        super().__init__(seed)
        self._sizes = sizes

    def backbone(self, x: str) -> list[str]:
        """The results of the last three stages: strides of 8, 16 and 32."""
        sizes = self._sizes
        x = self.convolution(x, (3, sizes.width), ("conv1", "bn1"), 7, 2, activation="relu")
        x = self.node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)
        channels, found = sizes.width, list[str]()
        for stage, blocks in enumerate(sizes.blocks):
            width = 2 * sizes.width << stage
            for block in range(blocks):
                stride = 2 if stage and not block else 1
                x = self._bottleneck(x, (channels, width), f"layer{stage + 1}.{block}", stride)
                channels = 2 * width
            found.append(x)
        return found[1:]

    def _bottleneck(self, x: str, channels: tuple[int, int], name: str, stride: int) -> str:
        inputs, width = channels
        groups = self._sizes.groups
        y = self.convolution(x, (inputs, width), (f"{name}.conv1", f"{name}.bn1"), activation="relu")
        y = self.convolution(y, (width, width), (f"{name}.conv2", f"{name}.bn2"), 3, stride, groups, "relu")
        y = self.convolution(y, (width, 2 * width), (f"{name}.conv3", f"{name}.bn3"), gain=0.4)
        if stride > 1 or inputs != 2 * width:
            x = self.convolution(x, (inputs, 2 * width), (f"{name}.downsample.0", f"{name}.downsample.1"), 1, stride)
        return self.node("Relu", [self.node("Add", [y, x])])

    def pyramid(self, stages: Sequence[str]) -> list[str]:
        """Five levels of as many channels each: three from the stages, top down, and two from the coarsest."""
        sizes = self._sizes
        channels = [4 * sizes.width << stage for stage in range(1, 4)]
        inner = [
            self.plain(x, (count, sizes.pyramid), f"inner.{number}")
            for number, (x, count) in enumerate(zip(stages, channels, strict=True))
        ]
        for number in (1, 0):
            scales = self.constant("twice", np.array([1, 1, 2, 2], np.float32))
            larger = self.node(
                "Resize",
                [inner[number + 1], "", scales],
                mode="nearest",
                nearest_mode="floor",
                coordinate_transformation_mode="asymmetric",
            )
            inner[number] = self.node("Add", [inner[number], larger])
        levels = [self.plain(x, (sizes.pyramid, sizes.pyramid), f"outer.{number}", 3) for number, x in enumerate(inner)]
        levels.append(self.plain(levels[-1], (sizes.pyramid, sizes.pyramid), "p6", 3, 2))
        levels.append(self.plain(self.node("Relu", [levels[-1]]), (sizes.pyramid, sizes.pyramid), "p7", 3, 2))
        return levels

    def plain(
        self,
        x: str,
        channels: tuple[int, int],
        name: str,
        kernel: int = 1,
        stride: int = 1,
        gain: float = 1.0,
    ) -> str:
        """A convolution with a bias and without normalization."""
        deviation = gain / math.sqrt(channels[0] * kernel * kernel)
        weight = self.normal(f"{name}.weight", (channels[1], channels[0], kernel, kernel), deviation)
        shift = self.normal(f"{name}.bias", (channels[1],), 0.1)
        return self.node(
            "Conv", [x, weight, shift], kernel_shape=[kernel] * 2, strides=[stride] * 2, pads=[kernel // 2] * 4
        )

    def dense_head(self, x: str, outputs: int, name: str, gain: float, bias: float) -> str:
        """Four convolutions and a last one: [batch, positions * anchors, outputs]. Levels share their weights."""
        width = self._sizes.pyramid
        for layer in range(4):
            x = self.node("Relu", [self.plain(x, (width, width), f"{name}.{layer}", 3, gain=math.sqrt(2))])
        weight = self._balanced(f"{name}.last.weight", (_ANCHORS * outputs, width, 3, 3), gain)
        shift = self.normal(f"{name}.last.bias", (_ANCHORS * outputs,), 0.1, bias)
        x = self.node("Conv", [x, weight, shift], kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
        x = self.node("Transpose", [x], perm=[0, 2, 3, 1])
        return self.node("Reshape", [x, self.constant(f"{name}.rows", np.array([0, -1, outputs], np.int64))])

    def _balanced(self, name: str, shape: tuple[int, int, int, int], gain: float) -> str:
        """Filters that see differences of neighbours: by what all positions share one class would win everywhere."""
        deviation = gain / math.sqrt(shape[1] * shape[2] * shape[3])
        filters = self._random.standard_normal(shape, np.float32) * np.float32(deviation)
        return self.constant(name, filters - filters.mean((2, 3), keepdims=True))

    def candidates(self, levels: Sequence[str]) -> tuple[str, str, str]:
        """Boxes [batch, k, 4], scores and classes [batch, k] of the best candidates of all levels."""
        found = [self._candidates(level, number) for number, level in enumerate(levels)]
        boxes, scores, labels = (list(part) for part in zip(*found, strict=True))
        return (
            self.node("Concat", boxes, axis=1),
            self.node("Concat", scores, axis=1),
            self.node("Concat", labels, axis=1),
        )

    def _candidates(self, level: str, number: int) -> tuple[str, str, str]:
        sizes = self._sizes
        logits = self.dense_head(level, sizes.classes, "classes", 1.5, -4.0)
        places = anchors(sizes.pixels, _STRIDES[number])
        flat = self.node(
            "Reshape", [self.node("Sigmoid", [logits]), self.constant("flat", np.array([0, -1], np.int64))]
        )
        count = min(sizes.candidates, len(places) * sizes.classes)
        scores, chosen = f"scores.{number}", f"chosen.{number}"
        self.append("TopK", [flat, self.constant(f"k{count}", np.array([count], np.int64))], [scores, chosen], axis=1)
        classes = self.constant("classes.count", np.array(sizes.classes, np.int64))
        rows = self.node("Div", [chosen, classes])
        labels = self.node("Sub", [chosen, self.node("Mul", [rows, classes])])
        offsets = self.dense_head(level, 4, "boxes", 0.3, 0.0)
        boxes = self._decoded(offsets, rows, places, number)
        return boxes, scores, self.node("Cast", [labels], to=onnx.TensorProto.FLOAT)

    def _decoded(
        self, offsets: str, rows: str, places: np.ndarray[tuple[int, int], np.dtype[np.float32]], number: int
    ) -> str:
        """Corners of the chosen boxes, inside of the picture: [batch, k, 4]."""
        last = self.constant("last", np.array([-1], np.int64))
        four = self.constant("four", np.array([1, 1, 4], np.int64))
        columns = self.node("Expand", [self.node("Unsqueeze", [rows, last]), four])
        moves = self.node("GatherElements", [offsets, columns], axis=1)
        at = self.node("Gather", [self.constant(f"anchors.{number}", places), rows], axis=0)
        (move, grow), (centre, side) = self._halves(moves, f"moves.{number}"), self._halves(at, f"at.{number}")
        centre = self.node("Add", [centre, self.node("Mul", [move, side])])
        most = self.scalar("spread", _SPREAD)
        half = self.node("Mul", [self.node("Exp", [self.node("Min", [grow, most])]), side])
        half = self.node("Mul", [half, self.scalar("half", 0.5)])
        corners = self.node("Concat", [self.node("Sub", [centre, half]), self.node("Add", [centre, half])], axis=2)
        return self.node("Clip", [corners, self.scalar("zero", 0.0), self.scalar("edge", float(self._sizes.pixels))])

    def _halves(self, x: str, name: str) -> tuple[str, str]:
        halves = self.constant("halves", np.array([2, 2], np.int64))
        self.append("Split", [x, halves], [f"{name}.0", f"{name}.1"], axis=2)
        return f"{name}.0", f"{name}.1"

    def detections(self, boxes: str, scores: str, labels: str) -> None:
        """NMS within each class: boxes of different classes are moved apart. The output has as many rows always."""
        sizes = self._sizes
        last = self.constant("last", np.array([-1], np.int64))
        column = self.node("Unsqueeze", [labels, last])
        apart = self.node("Mul", [column, self.scalar("apart", sizes.pixels + 1.0)])
        rows = self.node("Unsqueeze", [scores, self.constant("one.axis", np.array([1], np.int64))])
        most = self.constant("detections.count", np.array([sizes.detections], np.int64))
        limits = [
            self.constant("overlap", np.array([0.5], np.float32)),
            self.constant("least", np.array([0.05], np.float32)),
        ]
        kept = self.node("NonMaxSuppression", [self.node("Add", [boxes, apart]), rows, most, *limits])
        ends = self.constant("ends", np.array([0, 2], np.int64))
        where = self.node("Gather", [kept, ends], axis=1)
        table = self.node("Concat", [boxes, self.node("Unsqueeze", [scores, last]), column], axis=2)
        found = self.node("GatherND", [table, where])
        self._scattered(
            found, self.node("Gather", [kept, self.constant("first", np.array(0, np.int64))], axis=1), scores
        )

    def _scattered(self, found: str, pictures: str, scores: str) -> None:
        """Put detections, which are in order of pictures, into the rows of their picture."""
        count = self.node("Shape", [scores], start=0, end=1)
        on_off = self.constant("off.on", np.array([0, 1], np.int64))
        member = self.node("OneHot", [pictures, count, on_off])
        ranks = self.node("CumSum", [member, self.constant("zero.scalar", np.array(0, np.int64))])
        one = self.constant("one.axis", np.array([1], np.int64))
        rank = self.node("Sub", [self.node("ReduceSum", [self.node("Mul", [ranks, member]), one], keepdims=1), one])
        places = self.node("Concat", [self.node("Unsqueeze", [pictures, one]), rank], axis=1)
        rest = self.constant("rest", np.array([self._sizes.detections, 6], np.int64))
        shape = self.node("Concat", [count, rest], axis=0)
        self.node("ScatterND", [self.node("ConstantOfShape", [shape]), places, found], "detections")


SMALL = replace(
    DetectorSizes(),
    pixels=128,
    classes=8,
    blocks=(1, 1, 1, 1),
    width=16,
    groups=4,
    pyramid=32,
    candidates=50,
    detections=20,
)
"""A detector of the same form for tests."""
