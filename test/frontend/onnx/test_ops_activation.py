"""Activations and unary functions against onnxruntime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import assert_agrees, check_node, imported_text, numbers, one_node, run_onnxruntime

import mlirt

X = numbers(3, 4) * 2


@pytest.mark.parametrize(
    ("op_type", "attributes", "opset"),
    [
        ("Relu", {}, 14),
        ("Sigmoid", {}, 13),
        ("Tanh", {}, 13),
        ("LeakyRelu", {}, 16),
        ("LeakyRelu", {"alpha": 0.3}, 6),
        ("Elu", {"alpha": 0.7}, 6),
        ("Selu", {}, 6),
        ("Softsign", {}, 1),
        ("Softplus", {}, 1),
        ("HardSigmoid", {"alpha": 0.3}, 6),
        ("ThresholdedRelu", {"alpha": 0.5}, 10),
        ("Celu", {"alpha": 0.5}, 12),
        ("HardSwish", {}, 14),
        ("Mish", {}, 18),
        ("Gelu", {}, 20),
        ("Gelu", {"approximate": "tanh"}, 20),
        ("Shrink", {"bias": 0.5, "lambd": 1.0}, 9),
        ("Exp", {}, 13),
        ("Abs", {}, 13),
        ("Neg", {}, 13),
        ("Sin", {}, 7),
        ("Tan", {}, 7),
        ("Sinh", {}, 9),
        ("Asinh", {}, 9),
        ("Ceil", {}, 13),
        ("Floor", {}, 13),
        ("Round", {}, 11),
        ("Erf", {}, 13),
        ("Sign", {}, 13),
        ("Reciprocal", {}, 13),
    ],
)
def test_pointwise(op_type: str, attributes: dict[str, Any], opset: int) -> None:
    check_node(op_type, [X], opset=opset, **attributes)


@pytest.mark.parametrize("op_type", ["Sqrt", "Log", "Acos", "Atanh"])
def test_pointwise_on_positive_numbers(op_type: str) -> None:
    check_node(op_type, [np.linspace(0.1, 0.9, 7, dtype=np.float32)], opset=13)


@pytest.mark.parametrize("kind", ["positive", "negative", "both"])
def test_infinities(kind: str) -> None:
    flags: dict[str, Any] = {"detect_positive": int(kind != "negative"), "detect_negative": int(kind != "positive")}
    x = np.array([np.inf, -np.inf, 1.0, np.nan], np.float32)
    check_node("IsInf", [x], opset=10, **flags)
    check_node("IsNaN", [x], opset=13)


def test_clip_by_attributes() -> None:
    check_node("Clip", [X], opset=6, min=-0.5, max=0.5)
    check_node("Clip", [X], opset=6, min=-0.5)


@pytest.mark.parametrize("stored", [(), (1, 2)], ids=["at run time", "known"])
@pytest.mark.parametrize(("low", "high"), [(np.nan, 0.5), (-0.5, np.nan), (np.nan, np.nan), (1.0, -1.0)])
def test_bounds_that_are_no_numbers_bound_nothing(low: float, high: float, stored: tuple[int, ...]) -> None:
    x = np.array([-3, -0.1, 0.1, 3, np.nan, np.inf, -np.inf], np.float32)
    bounds = [np.array(one, np.float32) for one in (low, high)]
    model, feeds = one_node("Clip", [x, *bounds], 13, stored)
    assert_agrees(model, feeds)
    (y,) = mlirt.compile(model, "cpu").run(feeds).values()
    np.testing.assert_array_equal(y, run_onnxruntime(model, feeds)[0])


@pytest.mark.parametrize("bounds", [(0.0, None), (None, 0.5), (-0.5, 0.5), (None, None)])
@pytest.mark.parametrize("stored", [(), (1, 2)])
def test_clip_by_inputs(bounds: tuple[float | None, float | None], stored: tuple[int, ...]) -> None:
    given = [None if bound is None else np.array(bound, np.float32) for bound in bounds]
    check_node("Clip", [X, *given], opset=13, constants=stored)


def test_clip_of_integers() -> None:
    x = np.arange(-4, 5, dtype=np.int64)
    check_node("Clip", [x, np.array(-2, np.int64), None], opset=12, constants=[1])


def test_a_lower_bound_of_zero_is_a_relu() -> None:
    model, _ = one_node("Clip", [X, np.array(0, np.float32)], constants=[1])
    assert "trt.activation relu" in imported_text(model)


def test_parametric_relu_aligns_its_slope() -> None:
    check_node("PRelu", [numbers(1, 3, 4, 4), numbers(3, 1, 1, seed=1)], opset=16, constants=[1])
