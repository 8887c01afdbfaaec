"""Ops that are defined by other ops: in the model, and in ONNX (tensorrt-features.md#11.14)."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx_models import assert_agrees, imported_text, model_of, numbers, one_node, run_reference

from mlirt.errors import InvalidModelError


def scaled_relu(body: str = "Relu") -> onnx.FunctionProto:
    nodes = [
        helper.make_node(body, ["x"], ["r"], domain="" if body == "Relu" else "mine"),
        helper.make_node("Constant", [], ["f"], value_float=2.0),
        helper.make_node("Mul", ["r", "f"], ["y"]),
    ]
    nodes[1].attribute[0].ClearField("f")
    nodes[1].attribute[0].ref_attr_name = "factor"
    domains = [helper.make_opsetid("", 17), helper.make_opsetid("mine", 1)]
    return helper.make_function("mine", "ScaledRelu", ["x"], ["y"], nodes, domains, ["factor"])


def calling(function: onnx.FunctionProto) -> onnx.ModelProto:
    node = helper.make_node("ScaledRelu", ["in"], ["out"], name="call", domain="mine", factor=3.0)
    return model_of([node], {"in": ("float32", [4])}, ["out"], functions=[function], domains=["mine"])


def test_a_function_of_the_model() -> None:
    model = calling(scaled_relu())
    assert_agrees(model, {"in": numbers(4)})
    assert "dense<3.000000e+00>" in imported_text(model)


def test_a_function_that_calls_itself() -> None:
    with pytest.raises(InvalidModelError, match="its function calls itself, or the calls are nested too deeply"):
        imported_text(calling(scaled_relu("ScaledRelu")))


def test_a_function_of_onnx() -> None:
    assert_agrees(*one_node("NegativeLogLikelihoodLoss", [numbers(3, 5), np.array([1, 0, 4])], opset=13))
    got = run_reference(*one_node("CenterCropPad", [numbers(6, 5), np.array([4, 7])], opset=18, constants=[1]))
    assert got[0].shape == (4, 7)


def test_attention_by_its_function() -> None:
    query, key, value = numbers(1, 2, 3, 4), numbers(1, 2, 5, 4, seed=1), numbers(1, 2, 5, 4, seed=2)
    (got,) = run_reference(*one_node("Attention", [query, key, value], opset=23))
    scores = np.exp(query @ key.swapaxes(2, 3) / 2)
    np.testing.assert_allclose(got, scores / scores.sum(-1, keepdims=True) @ value, rtol=1e-4)


def test_layers_of_a_function_have_the_name_of_its_node() -> None:
    from mlirt.dialects.context import RtContext
    from mlirt.dialects.locations import names
    from mlirt.frontend.onnx.importer import import_model

    module = import_model(calling(scaled_relu()), RtContext())
    assert {name for op in module.walk() for name in names(op.location)} == {"call"}
