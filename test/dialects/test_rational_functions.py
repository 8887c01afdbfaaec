"""Quotients of polynomials against onnxruntime, bit for bit, and against the functions that they stand for."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import one_node, run_onnxruntime

from mlirt.dialects.rational_functions import SIGMOID, TANH, RationalFunction


@pytest.mark.parametrize(("op_type", "function"), [("Sigmoid", SIGMOID), ("Tanh", TANH)])
def test_equals_onnxruntime(op_type: str, function: RationalFunction) -> None:
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-25, 25, 200_000), rng.normal(size=100_000), [0.0, 100.0, -100.0]])
    x = x.astype(np.float32)
    (want,) = run_onnxruntime(*one_node(op_type, [x]))
    np.testing.assert_array_equal(function(x), want)


def test_are_close_to_their_functions() -> None:
    x = np.linspace(-30, 30, 100_001, dtype=np.float32)
    wide = x.astype(np.float64)
    np.testing.assert_allclose(SIGMOID(x), 1 / (1 + np.exp(-wide)), rtol=0, atol=3e-7)
    np.testing.assert_allclose(TANH(x), np.tanh(wide), rtol=0, atol=3e-7)
