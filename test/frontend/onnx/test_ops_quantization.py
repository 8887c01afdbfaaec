"""Quantised networks against onnxruntime, bit for bit."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from onnx_models import assert_agrees, imported_text, numbers, one_node, run_onnxruntime, run_reference, small_integers

import mlirt
from mlirt.errors import InvalidModelError, UnsupportedError

SCALE, ZERO = np.array(0.05, np.float32), np.array(128, np.uint8)


@pytest.mark.parametrize("zero", [ZERO, np.array(3, np.int8), None])
def test_quantize_and_dequantize(zero: np.ndarray | None) -> None:  # pyright: ignore[reportMissingTypeArgument, reportUnknownParameterType]
    arrays = [numbers(3, 4) * 4, SCALE, zero]
    assert_agrees(*one_node("QuantizeLinear", arrays, 13, (1, 2)), rtol=0, atol=0)
    kind = "uint8" if zero is None else zero.dtype.name
    integers = small_integers(3, 4, low=0, high=120, dtype=kind)
    assert_agrees(*one_node("DequantizeLinear", [integers, SCALE, zero], 13, (1, 2)), rtol=0, atol=0)


def test_one_scale_per_channel() -> None:
    """tensorrt-features.md#10.21: the attribute `axis` of opset 13."""
    scales = np.array([0.1, 0.2, 0.3], np.float32)
    model, feeds = one_node("QuantizeLinear", [numbers(2, 3, 4), scales, np.zeros(3, np.int8)], 13, (1, 2), axis=1)
    assert "axis = 1 : i64" in imported_text(model)
    assert_agrees(model, feeds, rtol=0, atol=0)


def test_one_scale_for_all() -> None:
    """tensorrt-features.md#10.21: opset 10 has no other."""
    arrays = [numbers(3, 4), SCALE, np.array(3, np.int8)]
    assert_agrees(*one_node("QuantizeLinear", arrays, 10, (1, 2)), rtol=0, atol=0)


@pytest.mark.parametrize("number", [0.0, -0.05, float("nan"), float("-inf")])
def test_scales_that_are_no_positive_numbers(number: float) -> None:
    """tensorrt-features.md#10.5: the layer is named, and its scale."""
    arrays = [numbers(3, 4), np.array(number, np.float32), np.array(3, np.int8)]
    model, _ = one_node("QuantizeLinear", arrays, 13, (1, 2))
    with pytest.raises(InvalidModelError, match=r"node.*: expected scales greater than 0, but .* holds"):
        imported_text(model)


def _masked(scale: float = np.inf) -> onnx.ModelProto:
    """softmax(x + mask), whose mask of 0 and -inf is quantised and dequantised as a calibration of it says."""
    nodes = [
        helper.make_node("QuantizeLinear", ["mask", "s", "z"], ["q"], name="quantize"),
        helper.make_node("Reshape", ["q", "shape"], ["r"]),
        helper.make_node("DequantizeLinear", ["r", "t", "z"], ["m"], name="dequantize"),
        helper.make_node("Add", ["x", "m"], ["a"]),
        helper.make_node("Softmax", ["a"], ["y"]),
    ]
    weights = {
        "mask": np.array([0, -np.inf, 0, -np.inf], np.float32),
        "s": np.array(np.inf, np.float32),
        "t": np.array(scale, np.float32),
        "z": np.array(0, np.int8),
        "shape": np.array([1, 4]),
    }
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [2, 4]) for name in "xy")
    graph = helper.make_graph(nodes, "g", [x], [y], [numpy_helper.from_array(w, name) for name, w in weights.items()])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_a_mask_of_minus_infinity_keeps_its_numbers() -> None:
    """The scale that a calibration finds is infinite, and no integers stand for such a mask."""
    x = numbers(2, 4)
    (y,) = mlirt.compile(_masked().SerializeToString(), target="cpu").run({"x": x}).values()
    weights = np.exp(x) * [1, 0, 1, 0]
    np.testing.assert_allclose(y, weights / weights.sum(1, keepdims=True), rtol=1e-6)


@pytest.mark.parametrize(
    ("last", "scale", "message"),
    [
        ("DequantizeLinear", 0.5, "expected an infinite scale, as its QuantizeLinear has"),
        ("QLinearAdd", np.inf, "it reads integers whose scale is infinite, which only DequantizeLinear can"),
    ],
)
def test_integers_with_an_infinite_scale_go_nowhere_else(last: str, scale: float, message: str) -> None:
    model = _masked(scale)
    if last != "DequantizeLinear":
        (node,) = [one for one in model.graph.node if one.op_type == "DequantizeLinear"]
        node.op_type, node.domain = last, "com.microsoft"
        node.input[:] = ["r", "s", "z", "r", "s", "z", "s", "z"]
        model.opset_import.add(domain="com.microsoft", version=1)
    with pytest.raises((InvalidModelError, UnsupportedError), match=message):
        mlirt.compile(model.SerializeToString(), target="cpu")


def test_an_output_has_no_infinite_scale() -> None:
    arrays = [numbers(3, 4), np.array(np.inf, np.float32), np.array(3, np.int8)]
    model, _ = one_node("QuantizeLinear", arrays, 13, (1, 2))
    with pytest.raises(InvalidModelError, match=r"the graph output .* has integers whose scale is infinite"):
        imported_text(model)


def test_weights_of_zeros_may_have_the_scale_0() -> None:
    arrays = [np.zeros((3, 4), np.int8), np.array([0.0, 0.5, 0.0], np.float32), np.zeros(3, np.int8)]
    assert_agrees(*one_node("DequantizeLinear", arrays, 13, (1, 2), axis=0), rtol=0, atol=0)
    arrays[1][0] = -1
    with pytest.raises(InvalidModelError, match=r"expected scales greater than 0, but .* holds -1\.0"):
        imported_text(one_node("DequantizeLinear", arrays, 13, (1, 2), axis=0)[0])


def test_quantisation_is_not_folded_away() -> None:
    model, _ = one_node("DequantizeLinear", [small_integers(3, 4, dtype="int8"), SCALE], 13, (0, 1))
    assert "trt.dequantize" in imported_text(model)


def test_dynamic_quantisation() -> None:
    model, feeds = one_node("DynamicQuantizeLinear", [numbers(3, 4) + 0.3], 11, outputs=3)
    for got, want in zip(run_reference(model, feeds), run_onnxruntime(model, feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6)


@pytest.mark.parametrize("op_type", ["QLinearAdd", "QLinearMul"])
def test_quantised_pairs(op_type: str) -> None:
    a, b = small_integers(3, 4, high=256, dtype="uint8"), small_integers(4, high=256, dtype="uint8", seed=1)
    arrays = [a, SCALE, ZERO, b, SCALE, ZERO, np.array(0.5, np.float32), ZERO]
    assert_agrees(*one_node(op_type, arrays, 17, range(1, 8), domain="com.microsoft"), rtol=0, atol=1)
