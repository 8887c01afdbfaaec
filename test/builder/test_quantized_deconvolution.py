"""Deconvolutions between quantize layers in engines, against onnxruntime (tensorrt-features.md#26.1)."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import model_of, numbers, run_onnxruntime

import mlirt
from mlirt.frontend.importing.number_arrays import Array


def upsampling(stride: int, size: int, pad: int) -> onnx.ModelProto:
    """A deconvolution of `[n, 8, h, 5]` to four channels whose weights have scales of their own, and a rectifier."""
    rng = np.random.default_rng(1)
    stored: dict[str, Array] = {
        "sx": np.array(0.02, np.float32),
        "zx": np.array(5, np.int8),
        "k": rng.integers(-127, 128, (8, 4, size, size), np.int8),
        "sk": np.array([0.01, 0.02, 0.005, 0.03], np.float32),
        "zk": np.zeros(4, np.int8),
        "b": numbers(4, seed=2),
        "sy": np.array(0.3, np.float32),
        "zy": np.array(-128, np.int8),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "sx", "zx"], ["a"]),
        helper.make_node("DequantizeLinear", ["k", "sk", "zk"], ["w"], axis=1),
        helper.make_node("ConvTranspose", ["a", "w", "b"], ["c"], "up", strides=[stride] * 2, pads=[pad] * 4),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "sy", "zy"], ["o"]),
        helper.make_node("DequantizeLinear", ["o", "sy", "zy"], ["y"]),
    ]
    return model_of(nodes, {"x": ("float32", ["n", 8, "h", 5])}, ["y"], stored)


@pytest.mark.parametrize(("stride", "size", "pad"), [(2, 2, 0), (2, 4, 1)])
def test_an_engine_on_the_cpu(stride: int, size: int, pad: int) -> None:
    """Sizes of the run; at most one step from onnxruntime, which multiplies floats."""
    model = upsampling(stride, size, pad)
    engine = mlirt.compile(model, target="cpu", precision="int8")
    for batch, height in ((1, 1), (3, 7)):
        x = numbers(batch, 8, height, 5)
        (found,) = engine.run({"x": x}).values()
        (wanted,) = run_onnxruntime(model, {"x": x})
        assert found.shape == wanted.shape
        assert np.abs(found - wanted).max() <= 0.3 * 1.001
        assert np.mean(found != wanted) < 0.02
    (layer,) = [one for one in engine.layers if one["family"] == "convolution"]
    assert "up" in str(layer["name"])
    assert "'dtype': 'uint8'" in str(layer["inputs"])
    assert "'dtype': 'int8'" in str(layer["outputs"])
