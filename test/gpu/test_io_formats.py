"""Formats of inputs and outputs on a GPU: what a run writes, and convolutions that read formats as they lie."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layer_networks import Array
from onnx import helper
from onnx_models import model_of, numbers

import mlirt
from mlirt.runtime.engine import Engine
from mlirt.tensor_formats import LAYOUTS, pack

pytestmark = pytest.mark.gpu
TYPES = {"float32": "fp32", "float16": "fp16"}
PAIRS = [(name, dtype) for name, layout in LAYOUTS.items() for dtype in layout.holds if dtype in TYPES]


def stored(engine: Any, feeds: dict[str, Array]) -> dict[str, Array]:
    """The outputs as they lie in memory."""
    assert isinstance(engine, Engine)
    return engine.context.run(engine.packed(feeds))


@pytest.mark.parametrize(("format", "dtype"), PAIRS)
def test_every_format(format: str, dtype: str) -> None:
    """tensorrt-features.md#5.1 and 5.3."""
    shape = (2, 3, 4, 5, 6) if LAYOUTS[format].from_end == 4 else (2, 3, 4, 5)
    model = model_of([helper.make_node("Add", ["x", "x"], ["y"], name="twice")], {"x": ("float32", shape)}, ["y"])
    spec = [f"{TYPES[dtype]}:{format.lower()}"]
    engine = mlirt.compile(model, "cuda", input_formats=spec, output_formats=spec, heuristic=True)
    array = np.round(numbers(*shape) * 8).astype(dtype)
    np.testing.assert_array_equal(stored(engine, {"x": array})["y"], pack(array + array, format))


@pytest.mark.parametrize(("channels", "direct"), [(64, True), (60, False), (3, False)])
@pytest.mark.parametrize("format", ["hwc8", "chw4"])
def test_convolutions(channels: int, direct: bool, format: str) -> None:
    """tensorrt-features.md#5.7 to 5.9: none but HWC8 is what a convolution works on, and what it writes without
    padding.
    """
    node = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1], name="conv")
    weights = {"w": np.round(numbers(channels, channels, 3, 3) * 2).astype(np.float32)}
    model = model_of([node], {"x": ("float32", [4, channels, 56, 56])}, ["y"], weights)
    array = np.round(numbers(4, channels, 56, 56) * 2).astype(np.float16)
    expected = mlirt.compile(model, "reference").run({"x": array.astype(np.float32)})["y"]
    spec, is_direct = [f"fp16:{format}"], direct and format == "hwc8"
    options: dict[str, Any] = {"input_formats": spec, "output_formats": spec, "direct_io": is_direct}
    engine = mlirt.compile(model, "cuda", "fp16", heuristic=True, **options)
    assert is_direct == (not any("Reformat" in str(record["name"]) for record in engine.layers))
    np.testing.assert_allclose(stored(engine, {"x": array})["y"], pack(expected, format.upper()), rtol=1e-2, atol=1)
