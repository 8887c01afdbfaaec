"""Names of dynamic dimensions as identifiers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_models import imported_text, model_of

import mlirt
from mlirt.dialects.symbolic_text import parse
from mlirt.frontend.importing.dimension_names import DimensionNames, identifier


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n", "n"),
        ("batch size", "batch_size"),
        ("p2o.DynamicDimension.0", "p2o_DynamicDimension_0"),
        ("2x", "d2x"),
        ("", "d"),
        ("max", "max_"),
        ("d0", "d0_"),
        ("17", "d17_"),
        ("höhe", "h_he"),
    ],
)
def test_identifiers(text: str, expected: str) -> None:
    assert identifier(text) == expected
    assert str(parse(expected)) == expected


def test_equal_names_are_equal_and_others_differ() -> None:
    names = DimensionNames()
    assert names.symbol("a.b") == names.symbol("a.b")
    assert names.symbol("a.b") != names.symbol("a b")


@pytest.mark.parametrize("text", ["?", "-", "None"])
def test_lengths_without_a_name_need_not_be_equal(text: str) -> None:
    model = model_of([helper.make_node("Relu", ["x"], ["y"])], {"x": ("float32", [text, 3, text])}, ["y"])
    assert '#trt.dims<["x_d0", "3", "x_d2"]>' in imported_text(model)


def test_a_dimension_may_be_called_as_an_iteration_is() -> None:
    """A length of 1 or 2 that a fixed tensor meets: accesses have `d0` and `d1` of their own beside it."""
    nodes = [helper.make_node("Sigmoid", ["x"], ["s"]), helper.make_node("Add", ["s", "r"], ["y"])]
    inputs = {"x": ("float32", ["d1", "d0"]), "r": ("float32", [2, 3])}
    model = model_of(nodes, inputs, ["y"])
    x, r = np.array([[1, -2, 4]], np.float32), np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    engine = mlirt.compile(model, target="cpu")
    for given in (x, np.concatenate([x, -x]), x[:, :1]):
        found = engine.run({"x": given, "r": r})["y"]
        np.testing.assert_allclose(found, 1 / (1 + np.exp(-given)) + r, rtol=1e-6)
