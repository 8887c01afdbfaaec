"""The magnitudes of a tensor's elements over many batches, in bins whose number never changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from mlirt.errors import InvalidInputError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

BINS = 2048


@dataclass
class Histogram:
    """Counts of |x| in `BINS` equal bins from 0 to `limit`, which doubles whenever a larger element comes (9.12).

    The first batch with an element other than 0 sets the limit. `largest` is the largest magnitude itself, `square_sum`
    the sum of squares. Memory does not grow with the data.
    """

    name: str = "tensor"
    limit: float = 0.0
    largest: float = 0.0
    square_sum: float = 0.0
    counts: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))

    @property
    def elements(self) -> int:
        return int(self.counts.sum())

    @property
    def bin_width(self) -> float:
        return self.limit / BINS

    @property
    def is_zero(self) -> bool:
        """Whether no element but 0 has come."""
        return self.largest == 0.0

    def add(self, batch: Array) -> None:
        """Count a batch's elements; raises `InvalidInputError` for a NaN or an infinity in it."""
        magnitudes = np.abs(batch.astype(np.float32, copy=False)).reshape(-1)
        top = float(magnitudes.max(initial=0.0))
        if not np.isfinite(top):
            raise InvalidInputError(
                f"tensor {self.name!r} holds NaN or infinity while it is calibrated: look at the calibration data"
            )
        if self.limit == 0.0 and top > 0.0:
            self.limit = top
        while top > self.limit:
            self._double()
        self.largest = max(self.largest, top)
        self.square_sum += float(np.square(magnitudes, dtype=np.float64).sum())
        if self.limit == 0.0:
            self.counts[0] += magnitudes.size
        else:
            self.counts += np.histogram(magnitudes, BINS, (0.0, self.limit))[0]

    def _double(self) -> None:
        """Twice the limit: neighbouring bins become one."""
        self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(1), np.zeros(BINS // 2, np.int64)])
        self.limit *= 2
