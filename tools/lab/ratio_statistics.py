"""Ratios of two times that were measured in turns: their mean, an interval for it by bootstrap, and a verdict.

Samples are ratios of neighbours in time, so that what slows both sides down (other programs, clocks that sink) cancels.
They come in sessions, in each of which both sides were set up anew: where memory lies makes two copies of the same
program differ by percents, in all samples of a session alike. The session is therefore what the bootstrap draws.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Verdict = Literal["faster", "slower", "no difference that could be shown"]
LEVEL = 0.95
_DRAWS = 4000
_CLEAR = 4
"""An interval is narrow enough where the ratio is so many of its half-widths from 1."""


@dataclass(frozen=True)
class Ratio:
    """A ratio of times with its interval; `sessions` and `rounds` say what it rests on."""

    value: float
    low: float
    high: float
    sessions: int
    rounds: int

    @property
    def verdict(self) -> Verdict:
        """What the interval says of the side in the denominator."""
        if self.low > 1:
            return "faster"
        return "slower" if self.high < 1 else "no difference that could be shown"

    @property
    def half_width(self) -> float:
        """Half of the interval, as a share: 0.01 is one percent either way."""
        return (math.log(self.high) - math.log(self.low)) / 2

    def is_narrow(self, resolution: float) -> bool:
        """Whether more rounds would tell nothing more that was asked for.

        The rule looks at the width, and not at where 1 lies: to go on until 1 is outside would show differences
        that are not there. A ratio far from 1 needs no interval as narrow as one that is near to it.
        """
        return self.half_width <= max(resolution, abs(math.log(self.value)) / _CLEAR)


def ratio_of(sessions: Sequence[Sequence[float]], level: float = LEVEL, seed: int = 0) -> Ratio:
    """The ratio of sessions of samples, each a ratio of times; at least two sessions, none empty.

    Of a session the median counts, which a few disturbed rounds do not move; of the sessions the geometric mean. Its
    interval is the percentile bootstrap's, expanded for few sessions as Student's t is (Hesterberg 2015, section 5.3).
    """
    if len(sessions) < 2 or not all(sessions):
        raise ValueError(f"expected two sessions or more with samples, got {[len(one) for one in sessions]}")
    medians = np.array([statistics.median(map(math.log, one)) for one in sessions])
    count = len(medians)
    drawn = np.random.default_rng(seed).integers(0, count, (_DRAWS, count))
    means = medians[drawn].mean(axis=1)
    tail = expanded_tail((1 - level) / 2, count)
    low, high = np.quantile(means, [tail, 1 - tail])
    rounds = sum(map(len, sessions))
    return Ratio(math.exp(medians.mean()), math.exp(low), math.exp(high), count, rounds)


def expanded_tail(tail: float, count: int) -> float:
    """The part of a bootstrap's distribution beyond one end of an interval whose ends shall each be missed by `tail`.

    A bootstrap of a mean of n samples is too narrow by sqrt((n - 1) / n), and knows nothing of Student's t.
    """
    reach = -student_quantile(tail, count - 1) * math.sqrt(count / (count - 1))
    return statistics.NormalDist().cdf(-reach)


def student_quantile(share: float, degrees: int) -> float:
    """A quantile of Student's t: exact for 1 and 2 degrees of freedom, else by Cornish and Fisher's expansion."""
    if degrees == 1:
        return math.tan(math.pi * (share - 0.5))
    if degrees == 2:
        return (2 * share - 1) / math.sqrt(2 * share * (1 - share))
    z, n = statistics.NormalDist().inv_cdf(share), degrees
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * n**4)
    )
