"""Products and sums with one rounding, against exact fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from trt_layers import random, run

from mlirt.dialects.trt.multiply_add import MultiplyAddOp


@settings(max_examples=200, deadline=None)
@given(st.integers(-128, 255), st.integers(-(2**24), 2**24), st.integers(-(2**24), 2**24))
def test_one_rounding(byte: int, factor: int, addend: int) -> None:
    operands = [np.array([number], np.float32) for number in (byte, factor / 2**23, addend / 2**16)]
    (y,) = run(MultiplyAddOp, operands)
    exact = byte * Fraction(factor, 2**23) + Fraction(addend, 2**16)
    errors = [
        abs(Fraction(float(np.nextafter(y[0], way))) - exact) for way in (np.float32(-np.inf), np.float32(np.inf))
    ]
    assert abs(Fraction(float(y[0])) - exact) <= min(errors)


def test_differs_from_two_roundings() -> None:
    third = np.array([1 / 3], np.float32)
    (y,) = run(MultiplyAddOp, [np.array([3], np.float32), third, np.array([-1], np.float32)])
    assert y[0] == 3 * float(third[0]) - 1 != np.float32(3) * third[0] - 1


def test_broadcasts() -> None:
    a, b, c = random((4, 3)), random((1, 1), 1), random((1, 3), 2)
    (y,) = run(MultiplyAddOp, [a, b, c], {0: "n,3"})
    assert_allclose(y, a * b + c, rtol=1e-5, atol=1e-6)
