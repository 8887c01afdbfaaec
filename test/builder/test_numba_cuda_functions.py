"""Elementary functions that the library computes by formulas of its own."""

from __future__ import annotations

import math

import numpy as np

from mlirt.builder.numba_cuda_intrinsics.functions import ERF_ABOVE, ERF_BELOW, ERF_LIMIT, LOG2_OF_E


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
