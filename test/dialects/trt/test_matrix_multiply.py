"""Matrix products (tensorrt-features.md#1.22a, 1.22b): the reference against NumPy's matmul."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import random, run

from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation

NONE, TRANSPOSE, VECTOR = MatrixOperation.NONE, MatrixOperation.TRANSPOSE, MatrixOperation.VECTOR


@pytest.mark.parametrize("batch", [((), ()), ((2,), (2,)), ((2, 1), (1, 3))], ids=str)
@pytest.mark.parametrize("lhs_op", [NONE, TRANSPOSE])
@pytest.mark.parametrize("rhs_op", [NONE, TRANSPOSE])
def test_matrices_1_22a(
    batch: tuple[tuple[int, ...], tuple[int, ...]], lhs_op: MatrixOperation, rhs_op: MatrixOperation
) -> None:
    a, b = random((*batch[0], 3, 4)), random((*batch[1], 4, 5), 1)
    left = a.swapaxes(-1, -2) if lhs_op is TRANSPOSE else a
    right = b.swapaxes(-1, -2) if rhs_op is TRANSPOSE else b
    (y,) = run(MatrixMultiplyOp, [left, right], lhs_op=lhs_op, rhs_op=rhs_op)
    assert_allclose(y, a @ b, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    ("left", "right", "lhs_op", "rhs_op", "equation"),
    [
        ((2, 4), (2, 4, 5), VECTOR, NONE, "bk,bkn->bn"),
        ((2, 3, 4), (2, 4), NONE, VECTOR, "bmk,bk->bm"),
        ((2, 4, 3), (1, 4), TRANSPOSE, VECTOR, "bkm,xk->bm"),
        ((2, 4), (2, 4), VECTOR, VECTOR, "bk,bk->b"),
        ((4,), (4,), VECTOR, VECTOR, "k,k->"),
    ],
)
def test_vectors_1_22a(
    left: tuple[int, ...], right: tuple[int, ...], lhs_op: MatrixOperation, rhs_op: MatrixOperation, equation: str
) -> None:
    a, b = random(left), random(right, 1)
    (y,) = run(MatrixMultiplyOp, [a, b], lhs_op=lhs_op, rhs_op=rhs_op)
    assert_allclose(y, np.einsum(equation, a, b), rtol=1e-4, atol=1e-6)


def test_empty_sum_is_zero_1_22b() -> None:
    (y,) = run(MatrixMultiplyOp, [np.zeros((3, 0), np.float32), np.zeros((0, 5), np.float32)])
    assert_array_equal(y, np.zeros((3, 5), np.float32))


def test_symbols_pass_through() -> None:
    run(MatrixMultiplyOp, [random((2, 3, 4)), random((1, 4, 5), 1)], {0: "n,m,4"})


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "float16", "float64"])
def test_element_types(dtype: str) -> None:
    a, b = random((3, 4), dtype=dtype), random((4, 5), 1, dtype)
    (y,) = run(MatrixMultiplyOp, [a, b])
    if np.dtype(dtype).kind == "f":
        assert_allclose(y, a.astype(np.float64) @ b.astype(np.float64), rtol=1e-3)
    else:
        expected = a.astype(np.int64) @ b.astype(np.int64)
        assert_array_equal(y, expected.astype("int32" if dtype == "int8" else dtype))


@pytest.mark.parametrize("left", ["int8", "uint8"])
def test_sums_of_int8_wrap_at_32_bits(left: str) -> None:
    depth = 2**18
    a, b = np.full((1, depth), np.iinfo(left).max, left), np.full((depth, 1), -128, np.int8)
    (y,) = run(MatrixMultiplyOp, [a, b])
    assert_array_equal(y, np.array([[-128 * depth * int(a[0, 0])]]).astype(np.int32))


def test_sums_beyond_53_bits_are_exact() -> None:
    a = np.full((1, 2), 2**30 + 1, np.int64)
    (y,) = run(MatrixMultiplyOp, [a, a], rhs_op=TRANSPOSE)
    assert y[0, 0] == 2 * (2**30 + 1) ** 2
