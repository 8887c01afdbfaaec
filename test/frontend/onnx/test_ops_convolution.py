"""Conv, ConvTranspose and Col2Im against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper
from onnx_models import assert_agrees, check_node, imported_text, model_of, numbers, one_node, run_onnxruntime

import mlirt
from mlirt.errors import InvalidModelError


@pytest.mark.parametrize(
    ("shape", "kernel", "attributes"),
    [
        ((1, 3, 8, 8), (4, 3, 3, 3), {}),
        ((2, 4, 9, 7), (6, 2, 3, 2), {"group": 2, "strides": [2, 1], "pads": [1, 0, 2, 1]}),
        ((1, 3, 9, 9), (4, 3, 3, 3), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
        ((1, 3, 8, 8), (4, 3, 2, 2), {"auto_pad": "SAME_LOWER"}),
        ((1, 3, 8, 8), (4, 3, 3, 3), {"auto_pad": "VALID"}),
        ((2, 3, 11), (4, 3, 3), {"strides": [2], "pads": [1, 1]}),
        ((1, 2, 5, 6, 7), (3, 2, 2, 3, 2), {"pads": [0, 1, 0, 0, 1, 1]}),
    ],
)
@pytest.mark.parametrize("bias", [False, True])
def test_conv(shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any], bias: bool) -> None:
    arrays = [numbers(*shape), numbers(*kernel, seed=1)] + ([numbers(kernel[0], seed=2)] if bias else [])
    check_node("Conv", arrays, constants=[1, 2], **attributes)


@pytest.mark.parametrize(
    ("shape", "kernel", "attributes"),
    [
        ((1, 3, 4, 4), (3, 5, 2, 2), {"strides": [2, 2]}),
        ((1, 4, 4, 5), (4, 3, 3, 3), {"group": 2, "strides": [2, 3], "pads": [1, 0, 0, 1], "output_padding": [1, 2]}),
        ((1, 3, 4, 4), (3, 2, 3, 3), {"strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 3, 4, 4), (3, 2, 3, 3), {"strides": [2, 2], "output_shape": [8, 9]}),
        ((2, 3, 6), (3, 2, 3), {"strides": [2], "dilations": [2]}),
    ],
)
def test_conv_transpose(shape: tuple[int, ...], kernel: tuple[int, ...], attributes: dict[str, Any]) -> None:
    check_node("ConvTranspose", [numbers(*shape), numbers(*kernel, seed=1)], constants=[1], **attributes)


def test_columns_become_an_image() -> None:
    sizes = [np.array([5, 6]), np.array([2, 3])]
    check_node("Col2Im", [numbers(1, 12, 12), *sizes], opset=18, constants=[1, 2], strides=[1, 2], pads=[0, 1, 0, 1])


def test_one_spatial_axis_becomes_two() -> None:
    model, _ = one_node("Conv", [numbers(1, 3, 8), numbers(4, 3, 3)], constants=[1])
    text = imported_text(model)
    assert "tensor<1x3x1x8xf32>, tensor<4x3x1x3xf32>) -> tensor<1x4x1x6xf32>" in text


@pytest.mark.parametrize("mode", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize(("size", "stride"), [(3, 2), (2, 3), (1, 2), (5, 2)])
def test_same_padding_of_dynamic_lengths_is_a_layer_before(mode: str, size: int, stride: int) -> None:
    """Exporters of TensorFlow write strided convolutions of images of any size so."""
    node = helper.make_node("Conv", ["x", "k"], ["y"], auto_pad=mode, strides=[stride, stride])
    model = model_of([node], {"x": ("float32", ["n", 3, "h", "w"])}, ["y"], {"k": numbers(4, 3, size, size)})
    text = imported_text(model)
    assert ("trt.slice" in text) == (size > 1)
    engine = mlirt.compile(model, "cpu")
    for sides in ((7, 10), (8, 9), (1, 2), (6, 6)):
        feeds = {"x": numbers(2, 3, *sides)}
        assert_agrees(model, feeds)
        (want,) = run_onnxruntime(model, feeds)
        np.testing.assert_allclose(engine.run(feeds)["y"], want, rtol=1e-4, atol=1e-5)


def test_same_padding_of_dynamic_lengths_that_a_stride_does_not_need_is_numbers() -> None:
    node = helper.make_node("Conv", ["x", "k"], ["y"], auto_pad="SAME_LOWER", dilations=[1, 2])
    model = model_of([node], {"x": ("float32", ["n", 3, "h", "w"])}, ["y"], {"k": numbers(4, 3, 2, 2)})
    text = imported_text(model)
    assert "pre_padding = array<i64: 1, 1>" in text
    assert "trt.slice" not in text


def test_the_kernel_must_fit_the_channels() -> None:
    model, _ = one_node("Conv", [numbers(1, 4, 8, 8), numbers(4, 3, 3, 3)], constants=[1])
    with pytest.raises(InvalidModelError, match=r"Conv \(node 'node'\): C6: channels .* expected 3, got 4"):
        imported_text(model)
