"""Places of maxima and the way back, against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import check_node, imported_text, model_of, numbers, one_node, run_onnxruntime, run_reference

import mlirt
from mlirt.errors import UnsupportedError

GEOMETRIES: list[dict[str, Any]] = [
    {"kernel_shape": [2, 2], "strides": [2, 2]},
    {"kernel_shape": [3, 2], "pads": [1, 0, 1, 1]},
    {"kernel_shape": [2, 2], "dilations": [2, 3]},
    {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1},
    {"kernel_shape": [2, 2], "strides": [2, 2], "storage_order": 1},
    {"kernel_shape": [3, 3], "auto_pad": "SAME_UPPER"},
]


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_places_of_maxima(geometry: dict[str, Any]) -> None:
    check_node("MaxPool", [numbers(2, 3, 6, 7)], opset=12, outputs=2, **geometry)


def test_a_line_and_integers() -> None:
    check_node("MaxPool", [numbers(2, 3, 9)], opset=12, outputs=2, kernel_shape=[3], strides=[2])
    x = np.arange(64).reshape(1, 1, 8, 8).astype(np.uint8)
    check_node("MaxPool", [x], opset=12, outputs=2, kernel_shape=[2, 2], pads=[1, 1, 0, 0])


INDICES = np.array([0, 9, 19, 27, 33, 35, 47, 55, 60, 64, 69, 71]).reshape(1, 2, 3, 2)


def test_unpooling() -> None:
    check_node("MaxUnpool", [numbers(1, 2, 3, 2), INDICES], opset=11, kernel_shape=[2, 3], strides=[2, 3])


def test_unpooling_to_a_larger_shape() -> None:
    """Indices are of the shape that the attributes give; what the larger one has more stays 0."""
    x = numbers(1, 2, 3, 2)
    shape: dict[str, Any] = {"kernel_shape": [2, 3], "strides": [2, 3]}
    model, feeds = one_node("MaxUnpool", [x, INDICES, np.array([1, 2, 7, 9])], opset=11, constants=[2], **shape)
    expected = np.zeros(72, np.float32)
    expected[INDICES.reshape(-1)] = x.reshape(-1)
    (found,) = run_reference(model, feeds)
    np.testing.assert_array_equal(found[:, :, :6, :6], expected.reshape(1, 2, 6, 6))
    assert not found[:, :, 6:].any()
    assert not found[..., 6:].any()


@pytest.mark.parametrize(
    ("target", "geometry"), [*(("reference", geometry) for geometry in GEOMETRIES[:5]), ("cpu", GEOMETRIES[3])]
)
def test_places_in_an_input_of_any_size(target: str, geometry: dict[str, Any]) -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], **geometry)
    model = model_of([node], {"x": ("float32", ["n", 3, "h", "w"])}, ["y", "places"], opset=12)
    engine = mlirt.compile(model, target)
    for shape in ((2, 3, 6, 7), (1, 3, 9, 5)):
        feeds = {"x": numbers(*shape)}
        for got, want in zip(engine.run(feeds).values(), run_onnxruntime(model, feeds), strict=True):
            np.testing.assert_array_equal(got, want)


def test_pads_that_unknown_sizes_decide_are_refused() -> None:
    geometry: dict[str, Any] = {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}
    model, _ = one_node("MaxPool", [numbers(1, 1, 4, 4)], opset=12, outputs=2, **geometry)
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "h"
    with pytest.raises(UnsupportedError, match="needs sizes that are known at build time with this auto_pad"):
        imported_text(model)
