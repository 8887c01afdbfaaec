"""Random numbers are spread as they should be, and differ by seed, run and place."""

from __future__ import annotations

import numpy as np
import pytest

from mlirt.dialects.random_numbers import normal, uniform

_COUNT = 1 << 16


@pytest.mark.parametrize("seed", [0, 1, 2**31, 2**32 - 1])
@pytest.mark.parametrize("run", [0, 1, 1000])
def test_uniform_numbers_are_spread_evenly(seed: int, run: int) -> None:
    """Each sixteenth of [0, 1) has its share, as has each of the next bits; neighbours know nothing of each other."""
    numbers = uniform(seed, run, _COUNT)
    assert numbers.dtype == np.float32
    assert 0 <= numbers.min() < numbers.max() < 1
    for scaled in (numbers * 16, numbers * 4096 % 16):
        counts = np.bincount(scaled.astype(int), minlength=16)
        assert ((counts - _COUNT / 16) ** 2 / (_COUNT / 16)).sum() < 45  # one in 10,000 with 15 degrees of freedom
    assert abs(np.corrcoef(numbers[1:], numbers[:-1])[0, 1]) < 0.02


def test_normal_numbers_have_the_moments_of_their_distribution() -> None:
    numbers = normal(3, 4, _COUNT).astype(np.float64)
    assert np.isfinite(numbers).all()
    for power, moment in ((1, 0), (2, 1), (3, 0), (4, 3)):
        assert abs((numbers**power).mean() - moment) < 0.1
    assert 3.5 < np.abs(numbers).max() < 6


def test_runs_and_seeds_have_numbers_of_their_own() -> None:
    drawn = [uniform(seed, run, 1000) for seed in (0, 1, 2) for run in (0, 1, 2)]
    for k, one in enumerate(drawn):
        assert all(abs(np.corrcoef(one, other)[0, 1]) < 0.15 for other in drawn[:k])


def test_a_number_depends_on_its_place_alone() -> None:
    np.testing.assert_array_equal(uniform(5, 6, 10), uniform(5, 6, 100)[:10])
