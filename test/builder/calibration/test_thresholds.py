"""Thresholds of calibration against formulas written another way."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mlirt.builder.calibration.histogram import BINS, Array, Histogram
from mlirt.builder.calibration.thresholds import entropy, kept_bins, largest, mean_squared_error, percentile, quantized


def of(*batches: Array) -> Histogram:
    histogram = Histogram()
    for batch in batches:
        histogram.add(batch)
    return histogram


def normal(size: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


def test_the_documented_example() -> None:
    assert quantized(np.array([1, 0, 2, 3, 5, 3, 1, 7.0]), 2).tolist() == [2, 0, 2, 2, 4, 4, 4, 4]


def plain_kept_bins(counts: list[int]) -> int:
    """The documented algorithm, one bin at a time."""
    best, found = float("inf"), 0
    for kept in range(128, len(counts)):
        p = [float(count) for count in counts[:kept]]
        p[-1] += sum(counts[kept:])
        q = [0.0] * kept
        for level in range(128):
            bins = [k for k in range(kept) if k * 128 // kept == level]
            full = [k for k in bins if counts[k]]
            for k in full:
                q[k] = sum(counts[k] for k in bins) / len(full)
        if sum(q) == 0 or any(b == 0 for a, b in zip(p, q, strict=True) if a):
            continue
        kl = sum(a / sum(p) * log((a / sum(p)) / (b / sum(q))) for a, b in zip(p, q, strict=True) if a)
        if kl < best - 1e-12:
            best, found = kl, kept
    return found


@pytest.mark.parametrize("seed", range(3))
def test_entropy_is_the_documented_algorithm(seed: int) -> None:
    data = np.abs(np.concatenate([normal(3000, seed), 2 * normal(50, seed + 9)]))
    counts = np.histogram(data, 300)[0]
    assert kept_bins(counts.astype(np.float64)) == plain_kept_bins(counts.tolist())


def test_outliers_are_cut_by_entropy_and_kept_by_min_max() -> None:
    data = np.concatenate([normal(100_000), np.array([60.0], np.float32)])
    histogram = of(data)
    assert largest(histogram) == 60.0
    assert 3.0 < entropy(histogram) < 20.0
    assert 20.0 < mean_squared_error(histogram) < 60.0


@given(quantile=st.floats(0.5, 0.9999))
@settings(deadline=None)
def test_a_percentile_has_so_many_elements_below_it_and_no_more_than_it_needs(quantile: float) -> None:
    data = np.abs(normal(20_000))
    histogram = of(data)
    found, rounding = percentile(quantile)(histogram), 1e-3 * histogram.bin_width
    assert (data <= found + rounding).mean() >= quantile
    assert (data < found - histogram.bin_width - rounding).mean() < quantile


def test_the_range_doubles_and_no_element_is_lost() -> None:
    histogram = of(normal(1000), 3 * normal(1000, 1), 50 * normal(1000, 2))
    data = np.abs(np.concatenate([normal(1000), 3 * normal(1000, 1), 50 * normal(1000, 2)]))
    first = np.abs(normal(1000)).max()
    assert np.log2(histogram.limit / first) == np.round(np.log2(histogram.limit / first))
    assert histogram.elements == 3000
    again = np.histogram(data, BINS, (0, histogram.limit))[0]
    assert np.abs(np.cumsum(again) - np.cumsum(histogram.counts)).max() <= 2  # rounding at the edges of bins


def test_a_tensor_of_zeros_has_no_range() -> None:
    histogram = of(np.zeros(10, np.float32))
    assert histogram.is_zero
    assert [f(histogram) for f in (entropy, largest, percentile(0.9), mean_squared_error)] == [0, 0, 0, 0]


def test_not_a_number_is_refused() -> None:
    from mlirt.errors import InvalidInputError

    with pytest.raises(InvalidInputError, match="tensor 'conv1' holds NaN while"):
        Histogram("conv1").add(np.array([1, np.nan], np.float32))


def test_a_tensor_with_infinities_has_no_elements_to_find_a_range_of() -> None:
    histogram = of(np.array([1, -2], np.float32))
    histogram.add(np.array([1, -np.inf], np.float32))
    histogram.add(np.array([1, -2], np.float32))
    assert histogram.elements == 0


def test_zeros_of_a_rectifier_cut_nothing_off() -> None:
    data = normal(100_000)
    whole, half = entropy(of(data)), entropy(of(np.maximum(data, 0)))
    assert half == pytest.approx(whole, rel=0.2)


def test_a_few_magnitudes_alone_are_all_kept() -> None:
    """Pictures with few shades, masks: no shade but the largest may be the end of the range."""
    shades = np.random.default_rng(0).integers(0, 17, 10_000).astype(np.float32) / np.float32(16)
    assert entropy(of(shades)) == pytest.approx(1.0, rel=0.1)
    assert entropy(of(np.array([0, 1, 1, 0], np.float32))) == 1.0
