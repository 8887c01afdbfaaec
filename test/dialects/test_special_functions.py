"""Special functions against the C library's."""

from __future__ import annotations

from math import erf as exact

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from mlirt.dialects.special_functions import erf


def test_erf() -> None:
    x = np.concatenate([np.linspace(-7, 7, 4001), [0.84375, 1.25, 1 / 0.35, 6.0, 1e-300, -1e-300, 1e300]])
    assert_allclose(erf(x), [exact(value) for value in x.tolist()], rtol=3e-16)


def test_erf_of_what_is_no_number() -> None:
    assert_array_equal(erf(np.array([np.inf, -np.inf, np.nan, 0.0])), [1, -1, np.nan, 0])


def test_erf_of_a_scalar() -> None:
    assert_allclose(erf(np.array(0.5)), exact(0.5))
