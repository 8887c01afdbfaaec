"""Weights of ONNX models with two zeros in four (tensorrt-features.md#16.5)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper
from onnx_models import Array, model_of, numbers, write_model

from mlirt.frontend.onnx.sparse_weights import two_of_four, with_sparse_weights


def by_hand(weights: Array, axis: int) -> Array:
    """One group after the other: the two largest stay."""
    found = np.moveaxis(weights.copy(), axis, -1)
    for place in np.ndindex(found.shape[:-1]):
        row = found[place]
        for first in range(0, len(row), 4):
            group = row[first : first + 4]
            for lane in sorted(range(4), key=lambda k, group=group: (-abs(float(group[k])), k))[2:]:
                group[lane] = 0
    return np.moveaxis(found, -1, axis)


@pytest.mark.parametrize(("shape", "axis"), [((3, 8, 2, 3), 1), ((12, 5), 0), ((2, 4, 7), -2), ((1, 16), 1)])
def test_the_two_largest_of_four_stay(shape: tuple[int, ...], axis: int) -> None:
    weights = numbers(*shape, seed=len(shape))
    np.testing.assert_array_equal(two_of_four(weights, axis), by_hand(weights, axis))
    assert (two_of_four(weights, axis) != 0).sum() == weights.size // 2


def test_other_lengths_stay() -> None:
    weights = numbers(3, 6, seed=1)
    np.testing.assert_array_equal(two_of_four(weights, 1), weights)
    equal = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(two_of_four(equal, 1), [[1, 1, 0, 0]])


def test_products_and_convolutions_are_rewritten(tmp_path: Path) -> None:
    """The weights that are multiplied by, along the axis that is summed over; nothing else."""
    constants = {"k": numbers(8, 4, 1, 1), "b": numbers(8), "g": numbers(8, 8), "m": numbers(8, 3), "c": numbers(8)}
    nodes = [
        helper.make_node("Conv", ["x", "k", "b"], ["a"]),
        helper.make_node("GlobalAveragePool", ["a"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "g", "c"], ["h"], transB=1),
        helper.make_node("MatMul", ["h", "m"], ["y"]),
    ]
    path = tmp_path / "a.onnx"
    write_model(model_of(nodes, {"x": ("float32", (1, 4, 3, 3))}, ["y"], constants), path)
    model, names = with_sparse_weights(str(path))
    assert sorted(names) == ["g", "k", "m"]
    found = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    for name, axis in (("k", 1), ("g", 1), ("m", 0)):
        np.testing.assert_array_equal(found[name], by_hand(constants[name], axis))
    for name in ("b", "c"):
        np.testing.assert_array_equal(found[name], constants[name])
