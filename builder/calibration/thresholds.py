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
    """The threshold at which the quantised distribution has the least divergence from the counted one (9.13)."""
    if histogram.is_zero:
        return 0.0
    return (kept_bins(histogram.counts.astype(np.float64)) + 0.5) * histogram.bin_width


def kept_bins(counts: Array) -> int:
    """How many bins, at least `LEVELS`, are best kept; the first of equals."""
    beyond = counts.sum() - np.concatenate([[0.0], np.cumsum(counts)])
    return min(range(LEVELS, len(counts)), key=lambda kept: divergence(counts[:kept], float(beyond[kept])))


def divergence(bins: Array, beyond: float) -> float:
    """Kullback and Leibler's divergence of the bins in 128 levels from the bins with all outliers in the last one."""
    p = bins.copy()
    p[-1] += beyond
    q = quantized(bins, LEVELS)
    if not p.any() or not q.any():
        return float("inf")
    p, q = p / p.sum(), q / q.sum()
    seen = p > 0
    if (q[seen] == 0).any():
        return float("inf")
    return float((p[seen] * np.log(p[seen] / q[seen])).sum())


def quantized(bins: Array, levels: int) -> Array:
    """The bins merged into `levels` and spread again: each level's count goes evenly to its bins that were not empty.

    [1, 0, 2, 3, 5, 3, 1, 7] in 2 levels is [2, 0, 2, 2, 4, 4, 4, 4].
    """
    level = np.arange(len(bins)) * levels // len(bins)
    occupied = bins > 0
    totals = np.bincount(level, bins, levels)
    shares = np.bincount(level, occupied, levels)
    means = np.divide(totals, shares, out=np.zeros(levels), where=shares > 0)
    return np.where(occupied, means[level], 0.0)


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
