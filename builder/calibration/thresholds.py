"""Where the range of an INT8 tensor ends: what lies beyond the threshold is clipped, the scale is threshold / 127.

Each function takes a histogram and gives the threshold; for a tensor that is uniformly zero it is 0.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from mlirt.builder.calibration.histogram import BINS, Array, Histogram

LEVELS = 128  # of the magnitude of an 8-bit number

Threshold = Callable[[Histogram], float]


def entropy(histogram: Histogram) -> float:
    """The threshold at which the quantised distribution has the least divergence from the counted one (9.13).

    Elements that are exactly 0, as half of those behind a rectifier, are a level of their own: every scale holds them,
    and their weight spread over the bins of the first level would cut off much of the others. Where no threshold is
    finitely far away, as for a single magnitude, it is the largest magnitude.
    """
    if histogram.is_zero:
        return 0.0
    counts = histogram.counts.astype(np.float64)
    counts[0] -= histogram.zeros
    kept = kept_bins(counts, histogram.zeros)
    return histogram.largest if kept is None else (kept + 0.5) * histogram.bin_width


def kept_bins(counts: Array, zeros: int = 0) -> int | None:
    """How many bins, at least `LEVELS`, are best kept; the first of equals, None where no number is."""
    kept = np.arange(LEVELS, len(counts))
    found = divergences(counts, kept, zeros)
    best = int(np.argmin(found))
    return int(kept[best]) if np.isfinite(found[best]) else None


def divergences(counts: Array, kept: Array, zeros: int = 0) -> Array:
    """For each number of bins that could be kept Kullback and Leibler's divergence of these bins in 128 levels.

    They are compared with the same bins with all that lies beyond them added to the last one; `zeros` are on both
    sides. A level has one height for all its bins, so sums over its bins are differences of cumulative sums.
    """
    below, last = _cumulative(counts)[kept], counts[kept - 1]
    beyond = counts.sum() - below
    totals, heights = level_heights(counts, kept, LEVELS)
    own = (
        _cumulative(_times_log(counts, counts))[kept]
        - _times_log(last, last)
        + _times_log(last + beyond, last + beyond)
    )
    cross = _times_log(totals, heights).sum(1) + _times_log(beyond, heights[:, -1])
    with np.errstate(divide="ignore"):
        total = counts.sum() + zeros
        found = (own - cross) / total - np.log(total) + np.log(below + zeros)
    return np.where((below == 0) | ((last == 0) & (beyond > 0)), np.inf, found)


def quantized(bins: Array, levels: int) -> Array:
    """The bins merged into `levels` and spread again: each level's count goes evenly to its bins that were not empty.

    [1, 0, 2, 3, 5, 3, 1, 7] in 2 levels is [2, 0, 2, 2, 4, 4, 4, 4].
    """
    _, heights = level_heights(bins, np.array([len(bins)]), levels)
    level = np.arange(len(bins)) * levels // len(bins)
    return np.where(bins > 0, heights[0, level], 0.0)


def level_heights(counts: Array, kept: Array, levels: int) -> tuple[Array, Array]:
    """For the first `kept` bins in `levels` equal parts the count of each part, and its mean over bins not empty."""
    edges = -(-np.arange(levels + 1) * kept[:, np.newaxis] // levels)
    totals = np.diff(_cumulative(counts)[edges], axis=1)
    shares = np.diff(_cumulative(counts > 0)[edges], axis=1)
    return totals, np.divide(totals, shares, out=np.zeros(totals.shape), where=shares > 0)


def _cumulative(numbers: Array) -> Array:
    return np.concatenate([[0.0], np.cumsum(numbers)])


def _times_log(factors: Array, numbers: Array) -> Array:
    """factor * log(number), 0 where either is 0."""
    return factors * np.log(numbers, out=np.zeros(np.shape(numbers)), where=numbers > 0)


def largest(histogram: Histogram) -> float:
    """The largest magnitude that was seen (9.14)."""
    return histogram.largest


def percentile(quantile: float) -> Threshold:
    """The magnitude that the given part of the elements does not exceed, for example 0.9999 (9.15)."""

    def threshold(histogram: Histogram) -> float:
        if histogram.is_zero:
            return 0.0
        wanted = quantile * histogram.elements
        bin_ = int(np.argmax(np.cumsum(histogram.counts) >= wanted))
        return min((bin_ + 1) * histogram.bin_width, histogram.largest)

    return threshold


def mean_squared_error(histogram: Histogram) -> float:
    """The threshold with the least sum of squared rounding and clipping errors."""
    if histogram.is_zero:
        return 0.0
    counts = histogram.counts.astype(np.float64)
    centres = (np.arange(BINS) + 0.5) * histogram.bin_width
    candidates = np.linspace(histogram.limit / LEVELS, histogram.limit, 256)

    def error(threshold: float) -> float:
        scale = threshold / (LEVELS - 1)
        rounded = np.minimum(np.rint(centres / scale), LEVELS - 1) * scale
        return float((counts * np.square(centres - rounded)).sum())

    return float(min(candidates, key=error))
