"""Holds all launches of a plan for a CPU to the contracts of their kernels at once, when shapes are bound.

What has no symbols is looked at when a plan is loaded. A launch that is not found to keep its contract here is in
doubt: `LaunchBinder` looks at it alone, and says what is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np

from mlirt.runtime.contract_table import ContractTable, NotTabledError, Terms, Touched
from mlirt.runtime.extents import Contract
from mlirt.runtime.formula_table import FormulaTable
from mlirt.runtime.launch_words import LaunchArguments, joined
from mlirt.runtime.manifest import IntArgument, Launch, Manifest

_MAX_DISTANCE = 1 << 61
_FAR_ELEMENT = 1 << 50  # times the bytes of one it is less than _MAX_DISTANCE


@dataclass(frozen=True)
class _Spans:
    """By which numbers of a table each range of bytes begins and ends: the union of extents that lie in a row."""

    lows: np.ndarray
    highs: np.ndarray
    guards: np.ndarray
    widths: np.ndarray
    firsts: np.ndarray
    """The first extent of each range."""

    @staticmethod
    def of(ranges: Sequence[Sequence[Touched]]) -> _Spans:
        """Ranges by number."""
        rows = [(one.low, one.high, one.guard, one.width) for extents in ranges for one in extents]
        columns = np.array(rows, np.int64).reshape(len(rows), 4)
        firsts = np.array([0, *accumulate(map(len, ranges))][:-1], np.intp)
        lows, highs, guards, widths = (np.ascontiguousarray(columns[:, k]) for k in range(4))
        return _Spans(lows, highs, guards, widths, firsts)

    def bytes(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The first byte of each range and the one past the last; not less than the latter where it is empty."""
        low, high = values[self.lows], values[self.highs]
        is_far = (low <= -_FAR_ELEMENT) | (high >= _FAR_ELEMENT)
        is_used = (low <= high) & (values[self.guards] >= 0)
        start, end = low * self.widths, (high + 1) * self.widths
        # The whole of what a far one could mean lies outside of every buffer.
        if bool(is_far.any()):
            start[is_far], end[is_far] = -_MAX_DISTANCE, _MAX_DISTANCE
        start, end = np.where(is_used, start, _MAX_DISTANCE), np.where(is_used, end, -_MAX_DISTANCE)
        return np.minimum.reduceat(start, self.firsts), np.maximum.reduceat(end, self.firsts)


class LaunchProofs:
    """The launches that have to be proved, by what they touch."""

    def __init__(self, manifest: Manifest, arguments: LaunchArguments, formulas: FormulaTable) -> None:
        self._arguments, self._formulas = arguments, formulas
        self._one_by_one: list[int] = []
        self.table = ContractTable()
        self._proved: list[int] = []
        self._needs: dict[int, list[int]] = {}
        """By numbers that must not be less than 0, the launches that are proved by them."""
        self._ranges: dict[tuple[Touched, ...], int] = {(): 0}
        self._range_of: dict[tuple[int, int], int] = {}
        """By launch and place of a pointer, the range of bytes that it is used for."""
        for launches in self._alike(manifest).values():
            self._add(manifest, launches)
        self._spans = _Spans.of(list(self._ranges)[1:])
        places = arguments.pointers - arguments.starts[arguments.launches]
        pairs = zip(arguments.launches.tolist(), places.tolist(), strict=True)
        self._ranges_of_pointers = np.array([self._range_of.get(pair, 0) for pair in pairs], np.intp)
        self._ranged = np.flatnonzero(self._ranges_of_pointers)
        kinds = joined(self._ranges_of_pointers, arguments.kinds)
        self._kinds = self._ranged[np.unique(kinds[self._ranged], return_index=True)[1]]
        """Pointers such that each is used for the range of one of them, and points to where that one does."""
        self._natural = np.array(list(self._needs), np.intp)

    def _alike(self, manifest: Manifest) -> Mapping[tuple[object, ...], list[int]]:
        """Launches of one kernel whose integers have the same formulas, so that they touch the same extents."""
        alike: dict[tuple[object, ...], list[int]] = {}
        for number, launch in enumerate(manifest.launches):
            if manifest.kernels[launch.kernel].plugin is not None:
                self._one_by_one.append(number)
            elif number not in manifest.sealed:
                integers = (one.value for one in launch.args if isinstance(one, IntArgument))
                alike.setdefault((launch.kernel, *integers), []).append(number)
        return alike

    def _add(self, manifest: Manifest, launches: Sequence[int]) -> None:
        launch = manifest.launches[launches[0]]
        contracts = manifest.contracts.get(manifest.kernels[launch.kernel].symbol, ())
        if not contracts or any(one.unproved for one in contracts):
            return  # others are as they were made
        self._proved += launches
        terms = self._terms(contracts, launch)
        if terms is None:
            self._one_by_one += launches
            return
        for number in terms.natural:
            self._needs.setdefault(number, []).extend(launches)
        by_place: dict[int, list[Touched]] = {}
        for one in terms.touched:
            by_place.setdefault(one.place, []).append(one._replace(place=0))
        for place, extents in by_place.items():
            number = self._ranges.setdefault(tuple(extents), len(self._ranges))
            self._range_of.update(((launch, place), number) for launch in launches)

    def _terms(self, contracts: Sequence[Contract], launch: Launch) -> Terms | None:
        """The first contract that may hold for a launch, whatever the shapes are; None where there is none."""
        integers = {i: one.value for i, one in enumerate(launch.args) if isinstance(one, IntArgument)}
        values = [value for value in integers.values() if isinstance(value, int)]
        if len(values) == len(integers):
            return self._fixed_terms(contracts, [integers.get(i, 0) for i in range(len(launch.args))])
        for contract in contracts:
            try:
                given = {
                    i: self.table.constant(value)
                    if isinstance(value, int)
                    else self.table.formula(self._formulas.add(value))
                    for i, value in integers.items()
                }
                return self.table.terms(contract, given)
            except NotTabledError:
                continue
        return None

    def _fixed_terms(self, contracts: Sequence[Contract], given: Sequence[object]) -> Terms | None:
        """What a launch without symbols touches."""
        found = (one.extents_of(given, (1, 1, 1)) for one in contracts)
        extents = next((one for one in found if not isinstance(one, str)), None)
        if extents is None or any(start < -_FAR_ELEMENT or end >= _FAR_ELEMENT for start, end in extents.values()):
            return None
        return self.table.touching(extents)

    @property
    def proves_all(self) -> bool:
        """Whether no launch has to be looked at one by one, whatever the shapes are."""
        return not self._one_by_one

    @property
    def natural(self) -> list[int]:
        """The numbers of `table` that must not be less than 0."""
        return list(self._needs)

    def touched(self) -> list[tuple[int, tuple[Touched, ...]]]:
        """Pointers by their place among all, and what each is used for: those of others are the same."""
        ranges = list(self._ranges)
        return [(pointer, ranges[self._ranges_of_pointers[pointer]]) for pointer in self._kinds.tolist()]

    def in_doubt(self, formulas: Sequence[int], words: np.ndarray, sizes: np.ndarray) -> list[int]:
        """The launches that are to be looked at one by one: most that would leave their buffers, and a few others.

        `formulas` are the values of the plan's formulas by number, `words` those of the launches' arguments.
        """
        values = self.table.evaluated(formulas)
        if values is None:
            return sorted({*self._one_by_one, *self._proved})
        doubtful = set(self._one_by_one)
        fails = values[self._natural] < 0
        for number in self._natural[fails].tolist():
            doubtful.update(self._needs[number])
        if len(self._ranges) > 1:
            doubtful.update(self._outside(values, words, sizes))
        if bool(np.any(sizes == 0)):
            proved = np.array(self._proved, np.intp)
            doubtful.update(proved[self._arguments.idle(sizes)[proved]].tolist())
        return sorted(doubtful)

    def _outside(self, values: np.ndarray, words: np.ndarray, sizes: np.ndarray) -> list[int]:
        """The launches one of whose pointers would be used for bytes outside of its buffer."""
        starts, ends = self._spans.bytes(values)
        arguments = self._arguments

        def fits(looked_at: np.ndarray) -> np.ndarray:
            which = self._ranges_of_pointers[looked_at] - 1
            low, high, offsets = starts[which], ends[which], words[arguments.pointers[looked_at]]
            return (low >= high) | ((offsets + low >= 0) & (offsets + high <= sizes[arguments.roots[looked_at]]))

        if bool(fits(self._kinds).all()):
            return []
        return arguments.launches[self._ranged[~fits(self._ranged)]].tolist()
