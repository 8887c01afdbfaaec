"""Unary operations (tensorrt-features.md#1.42a, 1.42b): the reference against Python's math and ONNX Runtime."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import layer, onnx_node, random, run
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.trt.unary import TESTS, UnaryKind, UnaryOp

KIND = UnaryKind

# A function, and an interval in which it is defined.
REAL: dict[UnaryKind, tuple[Callable[[float], float], float, float]] = {
    KIND.EXP: (math.exp, -5, 5),
    KIND.LOG: (math.log, 0.1, 9),
    KIND.SQRT: (math.sqrt, 0, 9),
    KIND.RECIP: (lambda x: 1 / x, 0.1, 9),
    KIND.ABS: (abs, -5, 5),
    KIND.NEG: (lambda x: -x, -5, 5),
    KIND.SIN: (math.sin, -5, 5),
    KIND.COS: (math.cos, -5, 5),
    KIND.TAN: (math.tan, -1, 1),
    KIND.SINH: (math.sinh, -5, 5),
    KIND.COSH: (math.cosh, -5, 5),
    KIND.ASIN: (math.asin, -1, 1),
    KIND.ACOS: (math.acos, -1, 1),
    KIND.ATAN: (math.atan, -5, 5),
    KIND.ASINH: (math.asinh, -5, 5),
    KIND.ACOSH: (math.acosh, 1, 5),
    KIND.ATANH: (math.atanh, -0.9, 0.9),
    KIND.CEIL: (math.ceil, -5, 5),
    KIND.FLOOR: (math.floor, -5, 5),
    KIND.ERF: (math.erf, -5, 5),
    KIND.SIGN: (lambda x: (x > 0) - (x < 0), -5, 5),
    KIND.ROUND: (round, -5, 5),
}
OTHERS = {KIND.NOT, KIND.ISNAN, KIND.ISINF, KIND.ISINF_POS, KIND.ISINF_NEG, KIND.BITWISE_NOT}


def test_every_kind_is_tested() -> None:
    assert set(REAL) | OTHERS == set(UnaryKind)


@pytest.mark.parametrize("kind", list(REAL))
@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 2e-7), ("float64", 1e-14), ("float16", 1e-3)])
def test_functions_1_42a(kind: UnaryKind, dtype: str, tolerance: float) -> None:
    function, low, high = REAL[kind]
    x = np.linspace(low, high, 41).astype(dtype).clip(low, high).astype(dtype)
    (y,) = run(UnaryOp, [x], {0: "n"}, kind=kind)
    assert_allclose(y, np.array([function(float(value)) for value in x]).astype(dtype), rtol=tolerance)


def test_rounds_half_to_even_1_42a() -> None:
    (y,) = run(UnaryOp, [np.array([-1.5, -0.5, 0.5, 1.5, 2.5], np.float32)], kind=KIND.ROUND)
    assert y.tolist() == [-2, 0, 0, 2, 2]


def test_special_numbers() -> None:
    x = np.array([np.nan, np.inf, -np.inf, 0], np.float32)
    results: dict[UnaryKind, Any] = {kind: run(UnaryOp, [x], kind=kind)[0].tolist() for kind in TESTS}
    assert results == {
        KIND.ISNAN: [True, False, False, False],
        KIND.ISINF: [False, True, True, False],
        KIND.ISINF_POS: [False, True, False, False],
        KIND.ISINF_NEG: [False, False, True, False],
    }


def test_outside_of_the_domain_is_no_warning() -> None:
    with np.errstate(all="raise"):
        (y,) = run(UnaryOp, [np.array([-1, 0], np.float32)], kind=KIND.LOG)
    assert_array_equal(y, [np.nan, -np.inf])


def test_not_and_bitwise_not() -> None:
    (y,) = run(UnaryOp, [np.array([True, False])], kind=KIND.NOT)
    assert y.tolist() == [False, True]
    (z,) = run(UnaryOp, [np.array([0, 1, 255], np.uint8)], kind=KIND.BITWISE_NOT)
    assert z.tolist() == [255, 254, 0]


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize(("kind", "node"), [(KIND.ABS, "Abs"), (KIND.NEG, "Neg"), (KIND.SIGN, "Sign")])
def test_integers_1_42b(dtype: str, kind: UnaryKind, node: str) -> None:
    x = random((30,), dtype=dtype)
    (y,) = run(UnaryOp, [x], kind=kind)
    assert_array_equal(y, onnx_node(node, [x])[0])


@pytest.mark.parametrize("kind", sorted(set(REAL) - {KIND.ABS, KIND.NEG, KIND.SIGN, KIND.CEIL, KIND.FLOOR, KIND.ROUND}))
def test_functions_of_integers_are_rejected_1_42b(kind: UnaryKind) -> None:
    with pytest.raises(VerifyException, match="C4"):
        layer(UnaryOp, [random((3,), dtype="int32")], kind=kind)
