"""Reductions (tensorrt-features.md#1.30a, 1.30b): the reference against ONNX Runtime and the table for empty sets."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.reduce import ReduceKind, ReduceOp

NODES = {
    ReduceKind.SUM: "ReduceSum",
    ReduceKind.PROD: "ReduceProd",
    ReduceKind.MAX: "ReduceMax",
    ReduceKind.MIN: "ReduceMin",
    ReduceKind.AVG: "ReduceMean",
}


@pytest.mark.parametrize("kind", list(ReduceKind))
@pytest.mark.parametrize("axes", [(0,), (1, 2), (0, 1, 2), (2, 0)], ids=str)
@pytest.mark.parametrize("keep", [False, True])
def test_against_onnxruntime_1_30a(kind: ReduceKind, axes: tuple[int, ...], keep: bool) -> None:
    x = random((2, 3, 4))
    (expected,) = onnx_node(NODES[kind], [x, np.array(axes, np.int64)], opset=18, keepdims=int(keep))
    (y,) = run(ReduceOp, [x], {0: "n,c,w"}, kind=kind, axes=axes, keep_dims=keep)
    assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        ("float32", {"sum": 0, "prod": 1, "max": -np.inf, "min": np.inf, "avg": np.nan}),
        ("int32", {"sum": 0, "prod": 1, "max": -(2**31), "min": 2**31 - 1, "avg": 0}),
        ("int8", {"sum": 0, "prod": 1, "max": -128, "min": 127, "avg": -128}),
    ],
)
def test_empty_set_1_30b(dtype: str, expected: dict[str, float]) -> None:
    for kind in ReduceKind:
        (y,) = run(ReduceOp, [np.zeros((2, 0), dtype)], kind=kind, axes=[1], keep_dims=False)
        assert_array_equal(y, np.full(2, expected[kind], dtype))


def test_average_of_integers_truncates_1_30a() -> None:
    x = np.array([[3, 4], [-3, -4]], np.int32)
    (y,) = run(ReduceOp, [x], kind=ReduceKind.AVG, axes=[1], keep_dims=False)
    assert y.tolist() == [3, -3]


def test_booleans_are_any_and_all() -> None:
    x = np.array([[True, False], [True, True]])
    (some,), (every,) = (
        run(ReduceOp, [x], kind=kind, axes=[1], keep_dims=False) for kind in (ReduceKind.MAX, ReduceKind.MIN)
    )
    assert some.tolist() == [True, True]
    assert every.tolist() == [False, True]


def test_half_sums_in_more_than_half() -> None:
    (y,) = run(ReduceOp, [np.ones((5000,), np.float16)], kind=ReduceKind.SUM, axes=[0], keep_dims=False)
    assert y == 5000


def test_nan_is_an_extreme() -> None:
    (y,) = run(ReduceOp, [np.array([1, np.nan], np.float32)], kind=ReduceKind.MAX, axes=[0])
    assert np.isnan(y).all()


def test_no_axes_changes_nothing() -> None:
    x = random((2, 3))
    (y,) = run(ReduceOp, [x], kind=ReduceKind.SUM, axes=[])
    assert_array_equal(y, x)
