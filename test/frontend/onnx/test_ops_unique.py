"""Unique against onnxruntime."""

from __future__ import annotations

import pytest
from onnx import helper
from onnx_models import assert_agrees, imported_text, model_of, numbers, one_node, small_integers

from mlirt.errors import UnsupportedError

OUTPUTS = ["values", "indices", "inverse", "counts"]


@pytest.mark.parametrize("is_sorted", [0, 1])
@pytest.mark.parametrize("shape", [(3, 7), (1, 1), (2, 40)])
@pytest.mark.parametrize("element", ["float32", "int64"])
def test_elements(is_sorted: int, shape: tuple[int, int], element: str) -> None:
    """How many there are is known to the run alone."""
    node = helper.make_node("Unique", ["x"], OUTPUTS, sorted=is_sorted)
    feeds = {"x": small_integers(*shape, high=6, dtype=element)}
    assert_agrees(model_of([node], {"x": (element, ["n", "m"])}, OUTPUTS), feeds)


def test_a_vector_along_its_only_axis() -> None:
    node = helper.make_node("Unique", ["x"], ["values", "", "inverse"], axis=0)
    feeds = {"x": small_integers(9, high=4, dtype="float32")}
    assert_agrees(model_of([node], {"x": ("float32", [9])}, ["values", "inverse"]), feeds)


def test_slices_along_an_axis_are_refused() -> None:
    model, _ = one_node("Unique", [numbers(3, 4)], axis=0)
    with pytest.raises(UnsupportedError, match="the slices along an axis"):
        imported_text(model)
