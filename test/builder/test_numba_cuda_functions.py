"""Elementary functions that the library computes by formulas of its own."""

from __future__ import annotations

import math

import numpy as np

from mlirt.builder.numba_cuda_intrinsics.functions import (
    ERF_ABOVE,
    ERF_BELOW,
    ERF_LIMIT,
    EXPM1_BELOW,
    EXPM1_LIMIT,
    LOG1P_BELOW,
    LOG1P_LIMIT,
    LOG2_OF_E,
    LOG_OF_2,
)


def test_the_short_error_function_is_close() -> None:
    x = np.concatenate([np.linspace(-6, 6, 40001), np.geomspace(1e-7, 1, 4001)]).astype(np.float32)
    inside = np.clip(x, np.float32(-ERF_LIMIT), np.float32(ERF_LIMIT))
    square = inside * inside

    def polynomial(coefficients: tuple[float, ...]) -> np.ndarray:
        so_far = np.full_like(square, coefficients[-1])
        for one in coefficients[-2::-1]:
            so_far = (so_far.astype(np.float64) * square + np.float32(one)).astype(np.float32)
        return so_far

    found = polynomial(ERF_ABOVE) * inside / polynomial(ERF_BELOW)
    exact = np.array([math.erf(one) for one in x.astype(np.float64)])
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, rtol=4e-7, atol=0)


def test_the_short_hyperbolic_tangent_is_close() -> None:
    x = np.concatenate([np.linspace(-60, 60, 40001), np.geomspace(1e-7, 1, 4001), [np.inf, -np.inf]]).astype(np.float32)
    with np.errstate(over="ignore"):
        power = np.exp2(x * np.float32(2 * LOG2_OF_E))
    found = 1 - np.float32(2) / (power + np.float32(1))
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.tanh(x.astype(np.float64)), rtol=0, atol=3e-7)


def _numbers(low: float) -> np.ndarray:
    near = np.geomspace(1e-8, 1, 4001)
    return np.concatenate([np.linspace(low, 20, 40001), near, -near[near < -low]]).astype(np.float32)


def _polynomial(coefficients: tuple[float, ...], at: np.ndarray) -> np.ndarray:
    so_far = np.full_like(at, coefficients[-1])
    for one in coefficients[-2::-1]:
        so_far = (so_far.astype(np.float64) * at + np.float32(one)).astype(np.float32)
    return so_far


def test_the_short_power_less_one_is_close() -> None:
    x = _numbers(-30)
    far = np.exp2(x * np.float32(LOG2_OF_E)) - np.float32(1)
    near = ((_polynomial(EXPM1_BELOW, x) * x).astype(np.float64) * x + x).astype(np.float32)
    found = np.where(np.abs(x) < np.float32(EXPM1_LIMIT), near, far)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.expm1(x.astype(np.float64)), rtol=2e-6, atol=0)


def test_the_short_logarithm_of_one_more_is_close() -> None:
    x = _numbers(-0.999)
    far = np.log2(x + np.float32(1)) * np.float32(LOG_OF_2)
    part = x * (np.float32(1) / (x + np.float32(2)))
    near = _polynomial(LOG1P_BELOW, part * part) * (part + part)
    found = np.where(np.abs(x) < np.float32(LOG1P_LIMIT), near, far)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, np.log1p(x.astype(np.float64)), rtol=2e-6, atol=0)
