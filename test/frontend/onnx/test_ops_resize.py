"""Resampling against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto, helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node

from mlirt.errors import InvalidModelError

X = numbers(1, 2, 4, 5)


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_the_old_forms(mode: str) -> None:
    scales = np.array([1, 1, 2, 1.5], np.float32)
    check_node("Upsample", [X], opset=7, mode=mode, scales=scales.tolist())
    check_node("Upsample", [X, scales], opset=9, constants=[1], mode=mode)
    check_node("Resize", [X, scales], opset=10, constants=[1], mode=mode)


@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
@pytest.mark.parametrize("coordinate", ["half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric"])
@pytest.mark.parametrize("sizes", [(8, 10), (3, 2), (7, 5)])
def test_sizes(mode: str, coordinate: str, sizes: tuple[int, int]) -> None:
    arrays = [X, None, None, np.array([1, 2, *sizes])]
    attributes = {"mode": mode, "coordinate_transformation_mode": coordinate}
    check_node("Resize", arrays, opset=13, constants=[3], **attributes)


@pytest.mark.parametrize("nearest", ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil"])
def test_roundings(nearest: str) -> None:
    scales = np.array([1, 1, 1.6, 0.7], np.float32)
    check_node("Resize", [X, None, scales], opset=13, constants=[2], mode="nearest", nearest_mode=nearest)


def test_some_axes_only() -> None:
    check_node("Resize", [X, None, None, np.array([8, 9])], opset=18, constants=[3], mode="linear", axes=[2, 3])


def test_a_dynamic_image() -> None:
    node = helper.make_node("Resize", ["x", "", "s"], ["y"], mode="linear")
    scales = {"s": np.array([1, 1, 2, 2], np.float32)}
    model = model_of([node], {"x": ("float32", [1, 2, "h", "w"])}, ["y"], scales)
    assert '["1", "2", "2*h", "2*w"]' in imported_text(model)
    assert_agrees(model, {"x": X})


def test_the_size_of_another_tensor() -> None:
    nodes = [
        helper.make_node("Shape", ["z"], ["zs"]),
        helper.make_node("Slice", ["zs", "two", "four", "axis"], ["hw"]),
        helper.make_node("Shape", ["x"], ["xs"]),
        helper.make_node("Slice", ["xs", "axis", "two", "axis"], ["nc"]),
        helper.make_node("Concat", ["nc", "hw"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="nearest", nearest_mode="floor"),
    ]
    constants = {"two": np.array([2]), "four": np.array([4]), "axis": np.array([0])}
    inputs = {"x": ("float32", ["n", 2, 4, 5]), "z": ("float32", ["n", 3, "h", "w"])}
    model = model_of(nodes, inputs, ["y"], constants)
    assert 'output_dims = #trt.dims<["n", "2", "h", "w"]>' in imported_text(model)
    assert_agrees(model, {"x": X, "z": numbers(1, 3, 9, 6)})


def test_sizes_that_only_the_run_can_tell() -> None:
    """As detectors scale an image so that its shorter side has a certain length: by a factor that is a float."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "two", "four"], ["hw"]),
        helper.make_node("Cast", ["hw"], ["lengths"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMin", ["lengths"], ["shorter"], keepdims=0),
        helper.make_node("Div", ["wanted", "shorter"], ["factor"]),
        helper.make_node("Mul", ["lengths", "factor"], ["scaled"]),
        helper.make_node("Floor", ["scaled"], ["floored"]),
        helper.make_node("Cast", ["floored"], ["new"], to=TensorProto.INT64),
        helper.make_node("Slice", ["shape", "zero", "two"], ["nc"]),
        helper.make_node("Concat", ["nc", "new"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
    ]
    constants = {
        "zero": np.array([0]),
        "two": np.array([2]),
        "four": np.array([4]),
        "wanted": np.array(8.5, np.float32),
    }
    model = model_of(nodes, {"x": ("float32", ["n", 2, "h", "w"])}, ["y"], constants)
    assert_agrees(model, {"x": X})
    assert_agrees(model, {"x": numbers(2, 2, 9, 7)})


def test_sizes_that_are_an_input() -> None:
    for sizes in ([1, 2, 7, 3], [1, 2, 2, 9]):
        check_node("Resize", [X, None, None, np.array(sizes)], opset=13, mode="nearest", nearest_mode="floor")


@pytest.mark.parametrize("mode", ["linear", "nearest", "cubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample(mode: str, padding: str) -> None:
    grid = numbers(1, 3, 4, 2, seed=1) * 0.8
    check_node("GridSample", [X, grid], opset=20, mode=mode, padding_mode=padding, align_corners=1)


def test_unknown_modes_are_refused() -> None:
    model, _ = one_node("Resize", [X, None, np.ones(4, np.float32)], opset=13, constants=[2], mode="area")
    with pytest.raises(InvalidModelError, match=r"expected mode as one of nearest, linear, cubic, .*got 'area'"):
        imported_text(model)
