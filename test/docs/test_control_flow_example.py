"""The networks of examples/control_flow.py, made layer by layer and read from ONNX, are right
(tensorrt-features.md#7.14, 8.12).
"""

from __future__ import annotations

import runpy
from pathlib import Path

import numpy as np
import pytest

run_both = runpy.run_path(str(Path(__file__).parents[2] / "examples" / "control_flow.py"))["run_both"]


@pytest.mark.parametrize(("condition", "expected"), [(True, [5, 7, 9]), (False, [4, 10, 18])])
def test_sum_or_product(condition: bool, expected: list[float]) -> None:
    x, y = np.array([1, 2, 3], np.float32), np.array([4, 5, 6], np.float32)
    for found in run_both("sum_or_product", {"condition": np.array(condition), "x": x, "y": y}, "cpu"):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("items", [[2, 3, 4, 7, 10], [1, 3], [], [-2, -1]])
def test_sum_even(items: list[int]) -> None:
    for found in run_both("sum_even", {"items": np.array(items, np.int32)}, "cpu"):
        assert found == sum(item for item in items if item % 2 == 0)
