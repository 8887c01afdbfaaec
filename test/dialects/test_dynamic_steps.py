"""Rows as whole numbers of steps, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_models import one_node, run_onnxruntime

from mlirt.dialects.dynamic_steps import dynamic_steps


@pytest.mark.parametrize("shift", [-5.0, -0.3, 0.0, 0.5, 5.0])
def test_equals_onnxruntime(shift: float) -> None:
    for seed in range(20):
        row = (np.random.default_rng(seed).normal(size=(1, 50)) + shift).astype(np.float32)
        stored, size, zero = run_onnxruntime(*one_node("DynamicQuantizeLinear", [row], 11, outputs=3))
        steps, found = dynamic_steps(row)
        np.testing.assert_array_equal(found.reshape(()), size)
        np.testing.assert_array_equal(steps, stored.astype(np.float32) - np.float32(zero))


def test_nothing_but_zeros() -> None:
    steps, size = dynamic_steps(np.zeros((2, 3), np.float32))
    assert size.tolist() == [[1], [1]]
    assert not steps.any()
