"""Poolings against onnxruntime."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node

from mlirt.errors import InvalidModelError

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


@pytest.mark.parametrize(("stride", "counts_padding"), [(2, 0), (6, 1)])
def test_no_window_at_all_is_refused(stride: int, counts_padding: int) -> None:
    attributes: dict[str, Any] = {"kernel_shape": [6], "strides": [stride], "count_include_pad": counts_padding}
    model, _ = one_node("AveragePool", [numbers(1, 1, 3)], opset=19, **attributes)
    with pytest.raises(InvalidModelError, match=r"'node'.*the window of trt.pooling reaches 6 cells"):
        imported_text(model)
