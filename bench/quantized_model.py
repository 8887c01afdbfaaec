"""Makes a network of int8 out of one of floats, as users of onnxruntime do, so that both sides have the same one.

`python bench/quantized_model.py MODEL FOLDER [--signed]` writes FOLDER/model.onnx, in which onnxruntime's static
quantiser has put QuantizeLinear and DequantizeLinear around the layers: bytes between layers (unsigned, or signed
ones), signed weights with a scale for each output channel, ranges from random inputs. Batch normalisation is folded
before; a sum of two is an addition, of which onnxruntime has an integer form. Then `python bench/cpu_models.py` on the
folder around FOLDER measures both sides.
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cpu_peer import cpu_session

_SAMPLES = 2
_OPSET = 13


def folded(model: Path, scratch: Path) -> Any:
    """The model after onnxruntime's basic optimisations, in an operator set that has scales by channel."""
    cpu_session(model, level="ORT_ENABLE_BASIC", optimized_path=scratch / "folded.onnx")
    proto = onnx.load(scratch / "folded.onnx")
    if any(one.domain in ("", "ai.onnx") and one.version < _OPSET for one in proto.opset_import):
        converter: Any = import_module("onnx.version_converter")
        proto = converter.convert_version(proto, _OPSET)
    for node in proto.graph.node:
        if node.op_type == "Sum" and len(node.input) == 2:
            node.op_type = "Add"
    return proto


def samples(proto: Any) -> Iterator[dict[str, np.ndarray]]:
    """Random inputs; a dimension without a number is 1."""
    weights = {tensor.name for tensor in proto.graph.initializer}
    inputs = [value for value in proto.graph.input if value.name not in weights]
    for seed in range(_SAMPLES):
        rng = np.random.default_rng(seed)
        shapes = {v.name: [dim.dim_value or 1 for dim in v.type.tensor_type.shape.dim] for v in inputs}
        yield {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


class Reader:
    """What the quantiser draws its samples from."""

    def __init__(self, proto: Any) -> None:
        self._samples = samples(proto)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._samples, None)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("model", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--signed", action="store_true", help="int8 between layers")
    options = parser.parse_args()
    quantization: Any = import_module("onnxruntime.quantization")
    kinds = quantization.QuantType
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "source.onnx"
        proto = folded(options.model, Path(scratch))
        onnx.save(proto, source)
        quantization.quantize_static(
            str(source),
            str(options.folder / "model.onnx"),
            Reader(proto),
            quant_format=quantization.QuantFormat.QDQ,
            per_channel=True,
            activation_type=kinds.QInt8 if options.signed else kinds.QUInt8,
            weight_type=kinds.QInt8,
        )


if __name__ == "__main__":
    main()
