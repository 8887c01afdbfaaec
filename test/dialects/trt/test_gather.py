"""Gathers (tensorrt-features.md#1.13a-1.13d): the reference against ONNX Runtime and definitions."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.trt.gather import GatherOp


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0,)], ids=str)
def test_default_1_13a(axis: int, shape: tuple[int, ...]) -> None:
    x, indices = random((4, 5, 6)), np.random.default_rng(0).integers(-4, 4, shape)
    (expected,) = onnx_node("Gather", [x, indices], axis=axis)
    (y,) = run(GatherOp, [x, indices], {0: "n,c,w"}, axis=axis)
    assert_array_equal(y, expected)


def test_elementwise_dims_1_13a() -> None:
    """The guide's example: [N, C, H, W] by [N, K]."""
    x, indices = random((2, 5, 3, 4)), np.array([[0, 4, 4], [1, 0, 2]])
    (together,) = run(GatherOp, [x, indices], {0: "n,5,3,4", 1: "n,k"}, axis=1, num_elementwise_dims=1)
    assert_array_equal(together, np.stack([x[n][indices[n]] for n in range(2)]))
    (apart,) = run(GatherOp, [x, indices], axis=1)
    assert apart.shape == (2, 2, 3, 3, 4)


@pytest.mark.parametrize("shared", [0, 1, 2])
@pytest.mark.parametrize("depth", [1, 2])
def test_nd_1_13b(shared: int, depth: int) -> None:
    x = random((2, 3, 4, 5))
    indices = np.random.default_rng(0).integers(-2, 2, (*x.shape[:shared], 6, depth))
    (expected,) = onnx_node("GatherND", [x, indices], batch_dims=shared)
    (y,) = run(GatherOp, [x, indices], mode=GatherMode.ND, num_elementwise_dims=shared)
    assert_array_equal(y, expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_element_1_13c(axis: int) -> None:
    x, indices = random((4, 5)), np.random.default_rng(0).integers(-4, 4, (2, 3))
    (expected,) = onnx_node("GatherElements", [x, indices], axis=axis)
    (y,) = run(GatherOp, [x, indices], {1: "k,m"}, mode=GatherMode.ELEMENT, axis=axis)
    assert_array_equal(y, expected)


@pytest.mark.parametrize("mode", list(GatherMode))
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_invalid_index_reads_zero_1_13d(mode: GatherMode, dtype: str) -> None:
    x = np.ones((3,), dtype)
    indices = np.array([0, 3, -3, -4, 100])
    (y,) = run(GatherOp, [x, indices[:, None] if mode is GatherMode.ND else indices], mode=mode)
    assert y.astype(int).tolist() == [1, 0, 1, 0, 0]


@pytest.mark.parametrize("mode", list(GatherMode))
def test_empty_data_reads_zero(mode: GatherMode) -> None:
    indices = np.zeros((2, 1), np.int32) if mode is GatherMode.ND else np.zeros((2,), np.int32)
    (y,) = run(GatherOp, [np.zeros((0,), np.float32), indices], mode=mode)
    assert_array_equal(y, [0, 0])
