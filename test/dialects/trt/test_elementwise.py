"""Elementwise operations (tensorrt-features.md#1.10a, 1.10b): the reference against Python's arithmetic and ONNX
Runtime.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from math import fmod, trunc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.elementwise import COMPARISONS, INTEGER_ONLY, LOGICAL, ElementwiseKind, ElementwiseOp

KIND = ElementwiseKind

ON_NUMBERS: dict[ElementwiseKind, Callable[[Any, Any], Any]] = {
    KIND.SUM: operator.add,
    KIND.PROD: operator.mul,
    KIND.MAX: max,
    KIND.MIN: min,
    KIND.SUB: operator.sub,
    KIND.FLOOR_DIV: lambda a, b: a // b,
    KIND.EQUAL: operator.eq,
    KIND.GREATER: operator.gt,
    KIND.LESS: operator.lt,
    KIND.GREATER_EQUAL: operator.ge,
    KIND.LESS_EQUAL: operator.le,
    KIND.MOD: operator.mod,
    KIND.FMOD: fmod,
}


@pytest.mark.parametrize("kind", list(ON_NUMBERS))
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int32", "int64"])
def test_numbers_1_10a(kind: ElementwiseKind, dtype: str) -> None:
    a, b = random((50,), dtype="int8").astype(dtype) // 10, random((50,), 1, "int8").astype(dtype) // 10
    b = np.where(b == 0, 3, b).astype(dtype)
    (y,) = run(ElementwiseOp, [a, b], {0: "n", 1: "n"}, kind=kind)
    expected = [ON_NUMBERS[kind](p, q) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    assert_allclose(y, np.array(expected).astype(y.dtype))
    assert y.dtype == (np.bool_ if kind in COMPARISONS else a.dtype)


def test_division_of_integers_1_10b() -> None:
    a, b = np.array([7, -7, 7, -7, 6], np.int32), np.array([2, 2, -2, -2, 3], np.int32)
    (truncated,) = run(ElementwiseOp, [a, b], kind=KIND.DIV)
    assert truncated.tolist() == [trunc(p / q) for p, q in zip(a.tolist(), b.tolist(), strict=True)]
    (floored,) = run(ElementwiseOp, [a, b], kind=KIND.FLOOR_DIV)
    assert floored.tolist() == [3, -4, -4, 3, 2]


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
def test_division_and_power_of_floats(dtype: str) -> None:
    a, b = np.abs(random((20,), dtype=dtype)), random((20,), 1, dtype)
    for kind, function in ((KIND.DIV, np.divide), (KIND.POW, np.power)):
        (y,) = run(ElementwiseOp, [a, b], kind=kind)
        assert_allclose(y, function(a, b), rtol=1e-2 if dtype == "float16" else 1e-6)


def test_logic_and_bits() -> None:
    a, b = np.array([0, 0, 1, 1], np.bool_), np.array([0, 1, 0, 1], np.bool_)
    results = {kind: run(ElementwiseOp, [a, b], kind=kind)[0].astype(int).tolist() for kind in LOGICAL}
    assert results == {KIND.AND: [0, 0, 0, 1], KIND.OR: [0, 1, 1, 1], KIND.XOR: [0, 1, 1, 0]}
    p, q = np.array([12, 200], np.uint8), np.array([1, 3], np.uint8)
    bits = {kind: run(ElementwiseOp, [p, q], kind=kind)[0].tolist() for kind in INTEGER_ONLY}
    assert bits == {
        KIND.BIT_AND: [0, 0],
        KIND.BIT_OR: [13, 203],
        KIND.BIT_XOR: [13, 203],
        KIND.SHIFT_LEFT: [24, 64],
        KIND.SHIFT_RIGHT: [6, 25],
    }


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from([(1, 1), (1, 4), (4, 1), (3, 3), (0, 1), (0, 0)]), max_size=4))
def test_broadcast_of_length_1(pairs: list[tuple[int, int]]) -> None:
    a, b = random([left for left, _ in pairs]), random([right for _, right in pairs], 1)
    (y,) = run(ElementwiseOp, [a, b], kind=KIND.SUM)
    assert_array_equal(y, a + b)


@pytest.mark.parametrize(("kind", "node", "extra"), [(KIND.MOD, "Mod", {}), (KIND.FMOD, "Mod", {"fmod": 1})])
def test_signs_of_remainders_as_in_onnxruntime(kind: ElementwiseKind, node: str, extra: dict[str, int]) -> None:
    a, b = np.array([5, -5, 5, -5], np.int32), np.array([3, 3, -3, -3], np.int32)
    (expected,) = onnx_node(node, [a, b], **extra)
    (y,) = run(ElementwiseOp, [a, b], kind=kind)
    assert_array_equal(y, expected)
