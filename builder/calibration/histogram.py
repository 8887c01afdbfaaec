"""The magnitudes of a tensor's elements over many batches, in bins whose number never changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from mlirt.errors import InvalidInputError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

BINS = 2048


_CHUNK = 1 << 15  # elements that stay in the cache between the steps of counting


@dataclass
class Histogram:
    """Counts of |x| in `BINS` equal bins from 0 to `limit`, which doubles whenever a larger element comes (9.12).

    The first batch with an element other than 0 sets the limit, so another order of the batches may give other bins
    (9.17). The same batches in the same order give the same counts. `largest` is the largest magnitude itself, `zeros`
    how many elements are exactly 0. Memory does not grow with the data. A tensor that is once `unbounded`, such as
    scores of attention behind a mask of infinities, has no range: nothing is counted of it any more.
    """

    name: str = "tensor"
    limit: float = 0.0
    largest: float = 0.0
    zeros: int = 0
    unbounded: bool = False
    counts: Array = field(default_factory=lambda: np.zeros(BINS, np.int64))

    @property
    def elements(self) -> int:
        return 0 if self.unbounded else int(self.counts.sum())

    @property
    def bin_width(self) -> float:
        return self.limit / BINS

    @property
    def is_zero(self) -> bool:
        """Whether no element but 0 has come."""
        return self.largest == 0.0

    def add(self, batch: Array) -> None:
        """Count a batch's elements; raises `InvalidInputError` for a NaN in it."""
        elements = batch.astype(np.float32, copy=False).reshape(-1)
        self.reach(float(max(elements.max(initial=0.0), -elements.min(initial=0.0))))
        if not self.unbounded:
            self.counts += counted(elements, self.limit)
            self.zeros += elements.size - int(np.count_nonzero(elements))

    def reach(self, top: float) -> None:
        """Make room for magnitudes up to `top`."""
        if np.isnan(top):
            raise InvalidInputError(
                f"tensor {self.name!r} holds NaN while it is calibrated: look at the calibration data"
            )
        self.unbounded = self.unbounded or bool(np.isinf(top))
        if self.unbounded:
            return
        self.limit = self.limit or top
        while top > self.limit:
            self.counts = np.concatenate([self.counts.reshape(-1, 2).sum(1), np.zeros(BINS // 2, np.int64)])
            self.limit *= 2
        self.largest = max(self.largest, top)


def counted(elements: Array, limit: float) -> Array:
    """How many float32 elements have their magnitude in each of `BINS` bins up to `limit`, as int64."""
    counts = np.zeros(BINS, np.int64)
    if limit == 0.0:
        counts[0] = elements.size
        return counts
    factor = factor_of(limit)
    scaled, bins = np.empty(_CHUNK, np.float32), np.empty(_CHUNK, np.int32)
    for start in range(0, elements.size, _CHUNK):
        part = elements[start : start + _CHUNK]
        room, numbers = scaled[: part.size], bins[: part.size]
        np.abs(part, out=room)
        np.multiply(room, factor, out=room)
        np.minimum(room, np.float32(BINS - 1), out=room)
        numbers[:] = room
        counts += np.bincount(numbers, minlength=BINS)
    return counts


def factor_of(limit: float) -> np.float32:
    """What a magnitude is multiplied with to have its bin; in float32 on every device, so that counts are equal."""
    return np.float32(BINS) / np.float32(limit) if limit else np.float32(0)
