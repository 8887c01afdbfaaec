"""Names of dynamic dimensions as identifiers."""

from __future__ import annotations

import pytest
from onnx import helper
from onnx_models import imported_text, model_of

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
