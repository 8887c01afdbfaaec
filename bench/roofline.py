"""How near each layer comes to what the device can do: time against the larger of arithmetic and memory traffic.

Traffic counts every operand and result of a layer once, arithmetic the products and sums of convolutions and matrix
products as they are defined, however a kernel computes them. Both are what a layer cannot go below when its tensors
come from memory; a layer whose inputs lie in the cache may be faster than its roof.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

_WIDTHS = {"float64": 8, "int64": 8, "uint64": 8, "float32": 4, "int32": 4, "uint32": 4, "float16": 2, "bfloat16": 2}


@dataclass(frozen=True)
class Peaks:
    """Operations a second by data type, bytes a second; from the maker's data sheet."""

    float16: float
    float32: float
    bytes: float


PEAKS = {"NVIDIA H200": Peaks(989e12, 67e12, 4.8e12), "NVIDIA H100 80GB HBM3": Peaks(989e12, 67e12, 3.35e12)}


@dataclass(frozen=True)
class LayerTime:
    """A layer with its time and its roof, both in microseconds."""

    name: str
    family: str
    kernel: str
    launches: int
    microseconds: float
    operations: float
    bytes: float
    roof: float

    @property
    def share(self) -> float:
        """The part of the roof that is reached: 1 is as fast as the device allows."""
        return self.roof / self.microseconds if self.microseconds else 0.0

    def record(self) -> dict[str, object]:
        return {**asdict(self), "share": round(self.share, 4)}


def layer_times(layers: Sequence[Mapping[str, Any]], times: Sequence[float], peaks: Peaks) -> list[LayerTime]:
    """One entry per layer, from the inspector's record and the microseconds of each launch, which are in one order."""
    return [_layer_time(group, peaks) for group in _grouped(list(zip(layers, times, strict=True)))]


def _grouped(launches: list[tuple[Mapping[str, Any], float]]) -> Iterator[list[tuple[Mapping[str, Any], float]]]:
    """Launches that follow one another and stand for the same op."""
    group: list[tuple[Mapping[str, Any], float]] = []
    for launch in launches:
        if group and any(group[0][0][key] != launch[0][key] for key in ("name", "inputs", "outputs")):
            yield group
            group = []
        group.append(launch)
    if group:
        yield group


def _layer_time(group: Sequence[tuple[Mapping[str, Any], float]], peaks: Peaks) -> LayerTime:
    layer = group[0][0]
    operations, traffic = operations_of(layer), bytes_of(layer)
    halves = any(tensor["dtype"] == "float16" for tensor in layer["inputs"])
    rate = peaks.float16 if halves else peaks.float32
    roof = 1e6 * max(operations / rate, traffic / peaks.bytes)
    kernels = " + ".join(dict.fromkeys(str(one["kernel"]) for one, _ in group))
    time = sum(microseconds for _, microseconds in group)
    return LayerTime(str(layer["name"]), str(layer["family"]), kernels, len(group), time, operations, traffic, roof)


def operations_of(layer: Mapping[str, Any]) -> float:
    """Multiplications and additions of a contraction; 0 for layers that memory bounds."""
    family, inputs = str(layer["family"]), [_shape(tensor) for tensor in layer["inputs"]]
    weights = [_shape(tensor) for tensor in layer.get("weights", ())]
    outputs = [_shape(tensor) for tensor in layer["outputs"]]
    factors = [*inputs[:1], *weights[:1], *inputs[1:]]
    if not outputs or len(factors) < 2:
        return 0.0
    result, left, right = math.prod(outputs[0]), factors[0], factors[1]
    if family.startswith("convolution"):
        return 2.0 * result * math.prod(right[1:])
    if family.startswith("deconvolution"):
        return 2.0 * math.prod(left) * math.prod(right[1:])
    if family.startswith("matmul"):
        return 2.0 * result * _depth(left, right, outputs[0])
    return 0.0


def _depth(lhs: Sequence[int], rhs: Sequence[int], result: Sequence[int]) -> int:
    """The summed dimension, whichever operands are stored transposed."""
    rows, columns = result[-2:]
    for left, right in ((lhs[-2:], rhs[-2:]), (lhs[-2:], rhs[-2:][::-1]), (lhs[-2:][::-1], rhs[-2:])):
        if (left[0], right[1]) == (rows, columns) and left[1] == right[0]:
            return left[1]
    return lhs[-2] if lhs[-1] == rows else lhs[-1]


def bytes_of(layer: Mapping[str, Any]) -> float:
    """Every operand and result once."""
    tensors = cast("list[Mapping[str, Any]]", [*layer["inputs"], *layer.get("weights", ()), *layer["outputs"]])
    return float(sum(math.prod(_shape(tensor)) * _WIDTHS.get(str(tensor["dtype"]), 1) for tensor in tensors))


def _shape(tensor: Mapping[str, Any]) -> list[int]:
    """The lengths; an open dimension counts as 1."""
    return [int(length) if str(length).isdigit() else 1 for length in tensor["shape"]]
