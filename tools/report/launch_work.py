"""What a launch moves and computes at least, by the shapes of what it reads and writes: for bars and the roofline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.expressions import ExpressionError, evaluate, parse, to_text
from mlirt.runtime.manifest import Manifest

_CONVOLUTIONS = ("convolution", "winograd", "depthwise", "deconvolution", "cudnn")
_PRODUCTS = ("matmul", "contraction", "gemm", "product", "cublas")


@dataclass(frozen=True)
class TensorFacts:
    """A tensor that a launch touches; lengths that no shape determines are None."""

    name: str
    dtype: str
    shape: tuple[int | None, ...]
    symbolic: str
    format: str = ""

    @property
    def elements(self) -> int:
        return math.prod(length or 0 for length in self.shape)

    @property
    def bytes(self) -> int:
        return self.elements * numpy_dtype(self.dtype).itemsize

    @property
    def known(self) -> str:
        """Type, lengths and layout, such as `float32 [1, 64, 56, 56] (channels last)`."""
        return " ".join(filter(None, (f"{self.dtype} {self._lengths}", self.format and f"({self.format})")))

    def __str__(self) -> str:
        return self.known if self.symbolic == self._lengths else f"{self.known} = {self.symbolic}"

    @property
    def _lengths(self) -> str:
        return f"[{', '.join('?' if length is None else str(length) for length in self.shape)}]"


@dataclass(frozen=True)
class LaunchWork:
    """The tensors of a launch, the bytes of all of them, and its operations: a multiply-add counts as two.

    Operations of convolutions, products and attention follow from the shapes, other layers count one for each element
    that they write; None where the plan says nothing about the launch.
    """

    inputs: Sequence[TensorFacts]
    weights: Sequence[TensorFacts]
    outputs: Sequence[TensorFacts]
    operations: int | None

    @property
    def bytes(self) -> int:
        return sum(one.bytes for one in (*self.inputs, *self.weights, *self.outputs))


def works(manifest: Manifest, values: Mapping[str, int]) -> list[LaunchWork]:
    """The work of each launch where the symbols have these values."""
    found = [_work(layer, values) for layer in manifest.layers[: len(manifest.launches)]]
    return found + [LaunchWork((), (), (), None)] * (len(manifest.launches) - len(found))


def _work(layer: Mapping[str, object], values: Mapping[str, int]) -> LaunchWork:
    inputs, weights, outputs = (_tensors(layer.get(side), values) for side in ("inputs", "weights", "outputs"))
    count = _operations(str(layer.get("family", "")), inputs, weights, outputs) if outputs else None
    return LaunchWork(inputs, weights, outputs, count)


def _operations(
    family: str, inputs: Sequence[TensorFacts], weights: Sequence[TensorFacts], outputs: Sequence[TensorFacts]
) -> int:
    written = sum(one.elements for one in outputs)
    matrices = [one for one in (*weights, *inputs) if len(one.shape) > 1]
    if any(word in family for word in _CONVOLUTIONS) and weights:
        return 2 * _pixels(outputs[0]) * weights[0].elements
    if any(word in family for word in _PRODUCTS) and len(matrices) > 1 and inputs:
        rows = math.prod(length or 0 for length in outputs[0].shape[:-1])
        return 2 * outputs[0].elements * max(1, inputs[0].elements // max(1, rows))
    if "attention" in family and len(inputs) > 1 and len(inputs[1].shape) > 1:
        return 4 * inputs[0].elements * (inputs[1].shape[-2] or 0)
    return written


def _pixels(output: TensorFacts) -> int:
    """The places that a filter is put at: all dimensions but that of the channels, which is two for blocks."""
    last = -1 if "blocks" in output.format else len(output.shape)
    return math.prod(length or 0 for length in (*output.shape[:1], *output.shape[2:last]))


def _tensors(records: object, values: Mapping[str, int]) -> list[TensorFacts]:
    listed = cast("list[object]", records) if isinstance(records, list) else []
    return [_tensor(cast("Mapping[str, object]", one), values) for one in listed if isinstance(one, Mapping)]


def _tensor(record: Mapping[str, object], values: Mapping[str, int]) -> TensorFacts:
    lengths = cast("list[object]", record["shape"]) if isinstance(record.get("shape"), list) else []
    symbolic = f"[{', '.join(_text(one, values) for one in lengths)}]"
    shape = tuple(_length(one, values) for one in lengths)
    return TensorFacts(
        str(record.get("name", "")), str(record.get("dtype", "")), shape, symbolic, str(record.get("format", ""))
    )


def _length(length: object, values: Mapping[str, int]) -> int | None:
    try:
        return evaluate(parse(length, values), values)
    except ExpressionError:
        return None


def _text(length: object, values: Mapping[str, int]) -> str:
    try:
        return to_text(parse(length, values))
    except ExpressionError:
        return "?"
