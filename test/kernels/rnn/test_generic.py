"""The steps of recurrent layers as kernels, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx_models import run_reference
from recurrent_models import lower_recurrent, quantized_recurrent_model, recurrent_model

import mlirt
from mlirt.dialects.plan.interpreter import run_plan

LAYERS: list[tuple[str, str, dict[str, Any]]] = [
    ("RNN", "reverse", {}),
    ("GRU", "bidirectional", {"lengths": True}),
    ("GRU", "forward", {"linear_before_reset": 1}),
    ("LSTM", "bidirectional", {"lengths": True, "peepholes": True, "clip": 0.7}),
]


@pytest.mark.parametrize(("op_type", "direction", "options"), LAYERS)
def test_in_the_simt_interpreter(op_type: str, direction: str, options: dict[str, Any]) -> None:
    model, feeds = recurrent_model(op_type, direction, **options)
    module, context = lower_recurrent(model, "generic")
    for found, want in zip(run_plan(module, context, feeds).values(), run_reference(model, feeds), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("op_type", "direction", "options"), LAYERS)
def test_compiled_with_weights_that_are_inputs(op_type: str, direction: str, options: dict[str, Any]) -> None:
    model, feeds = recurrent_model(op_type, direction, stored=False, **options)
    outputs = mlirt.compile(model, target="cpu").run(feeds)
    for found, want in zip(outputs.values(), run_reference(model, feeds), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("element", ["int8", "uint8"])
def test_integers_in_the_simt_interpreter(element: str) -> None:
    model, feeds = quantized_recurrent_model(element, hidden=4)
    module, context = lower_recurrent(model, "generic")
    for found, want in zip(run_plan(module, context, feeds).values(), run_reference(model, feeds), strict=True):
        np.testing.assert_array_equal(found, want)
