"""Holds all launches of a plan for a CPU to the contracts of their kernels at once, when shapes are bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirt.runtime.extents import Contract
from mlirt.runtime.launch_words import LaunchArguments
from mlirt.runtime.manifest import IntArgument, Manifest

_FAR = 1 << 61


@dataclass(frozen=True)
class _Alike:
    """Launches of one kernel whose integers have the same formulas, so that they touch the same extents."""

    launches: np.ndarray
    words: np.ndarray
    """The first word of each."""
    count: int
    """The words of one."""
    contracts: Sequence[Contract]


class LaunchProofs:
    """The launches that have to be proved, by what they touch."""

    def __init__(self, manifest: Manifest, arguments: LaunchArguments) -> None:
        self._arguments = arguments
        self._one_by_one: list[int] = []
        alike: dict[tuple[object, ...], list[int]] = {}
        for number, launch in enumerate(manifest.launches):
            kernel = manifest.kernels[launch.kernel]
            if kernel.plugin is not None:
                self._one_by_one.append(number)
            elif number not in manifest.sealed:
                integers = (one.value for one in launch.args if isinstance(one, IntArgument))
                alike.setdefault((launch.kernel, *integers), []).append(number)
        self._alike: list[_Alike] = []
        for launches in alike.values():
            first = manifest.launches[launches[0]]
            contracts = manifest.contracts.get(manifest.kernels[first.kernel].symbol, ())
            if contracts and not any(one.unproved for one in contracts):  # others are as they were made
                numbers = np.array(launches, np.intp)
                self._alike.append(_Alike(numbers, arguments.starts[numbers], len(first.args), contracts))

    def in_doubt(self, words: np.ndarray, sizes: np.ndarray) -> list[int]:
        """The launches that are to be looked at one by one: most that would leave their buffers, and a few others."""
        doubtful = set(self._one_by_one)
        low, high = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
        for alike in self._alike:
            given = words[alike.words[0] : alike.words[0] + alike.count].tolist()
            found = (one.extents_of(given, (1, 1, 1)) for one in alike.contracts)
            extents = next((one for one in found if not isinstance(one, str)), None)
            if extents is None or any(start < -_FAR or end > _FAR for start, end in extents.values()):
                doubtful.update(alike.launches.tolist())
                continue
            for place, (start, end) in extents.items():
                if start < end:
                    low[alike.words + place], high[alike.words + place] = start, end
        pointers = self._arguments.pointers
        offsets, low, high = words[pointers], low[pointers], high[pointers]
        fits = (low == high) | ((offsets + low >= 0) & (offsets + high <= sizes[self._arguments.roots]))
        doubtful.update(self._arguments.launches[~fits].tolist())
        if bool(np.any(sizes == 0)):
            proved = np.concatenate([np.zeros(0, np.intp), *(alike.launches for alike in self._alike)])
            doubtful.update(proved[self._arguments.idle(sizes)[proved]].tolist())
        return sorted(doubtful)
