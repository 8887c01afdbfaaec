"""The library of samples: those that the load generator asks for are in the host's memory before the clock starts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mlperf.workloads import Array, Arrays

Maker = Callable[[tuple[int, ...], "np.dtype[Any]"], Array]


class SampleLibrary:
    """Samples by their index; each array has a first dimension of 1, as a request of one row."""

    def __init__(self, sample: Callable[[int], Arrays], count: int, memory: Maker) -> None:
        self._sample, self._memory = sample, memory
        self.count = count
        self._loaded: dict[int, Arrays] = {}

    def load(self, indices: Sequence[int]) -> None:
        """Put samples into memory."""
        for index in indices:
            if index not in self._loaded:
                self._loaded[index] = {name: self._placed(array) for name, array in self._sample(index).items()}

    def unload(self, indices: Sequence[int]) -> None:
        """Forget samples."""
        for index in indices:
            self._loaded.pop(index, None)

    def __getitem__(self, index: int) -> Arrays:
        return self._loaded[index]

    def _placed(self, array: Array) -> Array:
        place = self._memory((1, *array.shape), array.dtype)
        place[0] = array
        return place
