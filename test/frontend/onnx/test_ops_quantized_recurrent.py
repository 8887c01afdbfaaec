"""DynamicQuantizeLSTM against onnxruntime, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import imported_text, numbers, one_node, run_onnxruntime, run_reference
from recurrent_models import quantized_recurrent_model

from mlirt.errors import InvalidModelError


@pytest.mark.parametrize(
    ("element", "options"),
    [
        ("int8", {}),
        ("uint8", {}),
        ("int8", {"each": True, "hidden": 33}),
        ("int8", {"direction": "reverse", "batch": 2}),
        ("int8", {"direction": "forward", "input_forget": 1}),
        ("uint8", {"clip": 0.3}),
    ],
)
def test_equals_onnxruntime(element: str, options: dict[str, Any]) -> None:
    model, feeds = quantized_recurrent_model(element, **options)
    for got, want in zip(run_reference(model, feeds), run_onnxruntime(model, feeds), strict=True):
        np.testing.assert_array_equal(got, want)


def test_unsigned_weights_are_shorts() -> None:
    text = imported_text(quantized_recurrent_model("uint8")[0])
    assert "tensor<80x20xi16>" in text
    assert "tensor<80x20xi8>" in imported_text(quantized_recurrent_model("int8")[0])


def test_scales_are_needed() -> None:
    arrays = [numbers(2, 1, 3), np.zeros((1, 3, 16), np.int8), np.zeros((1, 4, 16), np.int8)]
    model, _ = one_node("DynamicQuantizeLSTM", arrays, 17, (1, 2), 3, "com.microsoft", hidden_size=4)
    with pytest.raises(InvalidModelError, match="expected scales of the weights"):
        imported_text(model)
