"""Samples of different lengths in one batch: arrays [1, length, ..], padded with zeros to one of few lengths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mlperf.samples import Maker
from mlperf.workloads import Array, Arrays

STEP = 16
"""Padded lengths of whole queries are multiples of it: an engine prepares each length that it meets."""
LONG_STEP = 64
"""The same where batches have any number of rows as well."""


def length_of(sample: Mapping[str, Array]) -> int:
    """How long a sample is."""
    return next(iter(sample.values())).shape[1]


def padded_length(length: int, most: int, step: int = STEP) -> int:
    """The length that a sample is padded to: the next multiple of a step, and never more than `most`."""
    return min(-(-length // step) * step, most)


def padded_lengths(least: int, most: int, step: int = STEP) -> list[int]:
    """All that `padded_length` tells for lengths between two."""
    return sorted({padded_length(length, most, step) for length in range(least, most + 1)})


def joined_by_length(samples: Sequence[Arrays], rows: int, length: int, memory: Maker) -> Arrays:
    """Samples as one batch [rows, length, ..], zeros behind their ends; further rows have zeros alone."""
    found: Arrays = {}
    for name, first in samples[0].items():
        batch = memory((rows, length, *first.shape[2:]), first.dtype)
        for row, sample in zip(batch, samples, strict=False):
            array = sample[name][0]
            row[: len(array)], row[len(array) :] = array, 0
        batch[len(samples) :] = 0
        found[name] = batch
    return found
