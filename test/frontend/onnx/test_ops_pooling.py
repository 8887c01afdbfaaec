"""Poolings against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node, run_onnxruntime

import mlirt
from mlirt.errors import InvalidModelError, MlirtError

SHAPES = [
    ((1, 3, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ((1, 3, 9, 7), {"kernel_shape": [3, 2], "strides": [2, 2], "pads": [1, 0, 1, 1]}),
    ((1, 3, 9, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ((1, 3, 8, 8), {"kernel_shape": [3, 3], "strides": [3, 3], "ceil_mode": 1, "pads": [1, 1, 1, 1]}),
    ((1, 3, 9, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((2, 3, 11), {"kernel_shape": [3], "strides": [2]}),
    ((1, 2, 5, 6, 7), {"kernel_shape": [2, 3, 2]}),
]


@pytest.mark.parametrize(("shape", "attributes"), SHAPES)
def test_max_pool(shape: tuple[int, ...], attributes: dict[str, Any]) -> None:
    check_node("MaxPool", [numbers(*shape)], opset=12, **attributes)


@pytest.mark.parametrize(("shape", "attributes"), SHAPES)
@pytest.mark.parametrize("count_include_pad", [0, 1])
def test_average_pool(shape: tuple[int, ...], attributes: dict[str, Any], count_include_pad: int) -> None:
    check_node("AveragePool", [numbers(*shape)], opset=19, count_include_pad=count_include_pad, **attributes)


def test_a_dilated_window() -> None:
    check_node("MaxPool", [numbers(1, 2, 9, 9)], opset=12, kernel_shape=[3, 3], dilations=[2, 3])


@pytest.mark.parametrize("p", [1, 2, 3])
def test_lp_pool(p: int) -> None:
    check_node("LpPool", [numbers(1, 2, 8, 8)], opset=11, p=p, kernel_shape=[2, 3], strides=[2, 2], pads=[0, 1, 0, 1])


@pytest.mark.parametrize("op_type", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
def test_global_pools(op_type: str) -> None:
    check_node(op_type, [numbers(2, 3, 5, 4)], opset=11)


def test_ceil_mode_of_dynamic_lengths() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    model = model_of([node], {"x": ("float32", [1, 3, "h", "w"])}, ["y"])
    assert_agrees(model, {"x": numbers(1, 3, 8, 9)})


@pytest.mark.parametrize(("size", "stride", "pads"), [(3, 2, [0, 0]), (3, 3, [1, 1]), (2, 2, [0, 0])])
def test_norms_of_windows_that_overhang(size: int, stride: int, pads: list[int]) -> None:
    for length in (6, 7, 8):
        x = numbers(1, 2, length)
        check_node("LpPool", [x], opset=18, kernel_shape=[size], strides=[stride], pads=pads, ceil_mode=1, p=3)


def test_norms_of_windows_that_overhang_an_input_of_any_size() -> None:
    node = helper.make_node("LpPool", ["x"], ["y"], kernel_shape=[3, 2], strides=[2, 2], ceil_mode=1)
    model = model_of([node], {"x": ("float32", [1, 3, "h", "w"])}, ["y"], opset=18)
    for shape in ((1, 3, 8, 9), (1, 3, 7, 8)):
        assert_agrees(model, {"x": numbers(*shape)})


@pytest.mark.parametrize("pads", [[0, 0], [1, 0], [0, 1]])
@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_one_window_that_is_larger_than_the_input(op_type: str, pads: list[int]) -> None:
    for opset, more in ((11, {}), (13, {"count_include_pad": 1}), (19, {})):
        attributes: dict[str, Any] = more if op_type == "AveragePool" else {}
        shape: dict[str, Any] = {"kernel_shape": [6, 2], "strides": [6, 1], "pads": [pads[0], 0, pads[1], 0]}
        check_node(op_type, [numbers(1, 2, 3, 4)], opset=opset, **shape, **attributes)


@pytest.mark.parametrize("counts_padding", [0, 1])
def test_no_window_at_all_is_refused(counts_padding: int) -> None:
    attributes: dict[str, Any] = {"kernel_shape": [6], "strides": [2], "count_include_pad": counts_padding}
    model, _ = one_node("AveragePool", [numbers(1, 1, 3)], opset=19, **attributes)
    with pytest.raises(InvalidModelError, match=r"'node'.*the window of trt.pooling reaches 6 cells"):
        imported_text(model)


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
def test_static_and_dynamic_lengths_have_the_same_windows(op_type: str) -> None:
    """Those of onnxruntime: windows that are larger than the image, ceil_mode, places of maxima, all versions."""
    random = np.random.default_rng(3)
    for _ in range(40):
        rank = int(random.integers(1, 3))
        size, strides, lengths = (random.integers(1, 5, rank).tolist() for _ in range(3))
        opset = int(random.choice([18, 19, 22] if op_type == "LpPool" else [13, 18, 19, 22]))
        attributes: dict[str, Any] = {"kernel_shape": size, "strides": strides, "ceil_mode": int(random.integers(2))}
        attributes["pads"] = [min(int(random.integers(2)), cells - 1) for cells in (*size, *size)]
        if op_type == "AveragePool":
            attributes["count_include_pad"] = int(random.integers(2))
        outputs = ["y", "place"] if op_type == "MaxPool" else ["y"]
        node = helper.make_node(op_type, ["x"], outputs, name="node", **attributes)
        x = numbers(2, 3, *lengths)
        names = [f"d{axis}" for axis in range(x.ndim)]
        forms = [model_of([node], {"x": ("float32", dims)}, outputs, opset=opset) for dims in (x.shape, names)]
        wanted = _peer(forms[0], x)
        for form in forms:
            if wanted is None:
                with pytest.raises(MlirtError, match="node"):
                    mlirt.compile(form, "reference").run({"x": x})
            else:
                for found, want in zip(mlirt.compile(form, "reference").run({"x": x}).values(), wanted, strict=True):
                    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)


def _peer(model: Any, x: Any) -> list[Any] | None:
    """What onnxruntime gives; None where there is no window at all, where it refuses or gives nothing."""
    try:
        found = run_onnxruntime(model, {"x": x})
    except Exception:
        return None
    return found if found[0].size else None


@pytest.mark.parametrize("op_type", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("channels", [3, 32])
def test_kernels_for_images_that_are_smaller_than_the_window(op_type: str, channels: int) -> None:
    attributes: dict[str, Any] = {"count_include_pad": 1} if op_type == "AveragePool" else {}
    node = helper.make_node(op_type, ["x"], ["y"], kernel_shape=[2, 2], strides=[2, 2], **attributes)
    model = model_of([node], {"x": ("float32", [1, channels, "h", "w"])}, ["y"])
    engine = mlirt.compile(model, "cpu")
    for height, width in ((1, 1), (1, 6), (7, 1), (4, 5)):
        x = numbers(1, channels, height, width)
        (found,) = engine.run({"x": x}).values()
        np.testing.assert_allclose(found, run_onnxruntime(model, {"x": x})[0], rtol=1e-5)
