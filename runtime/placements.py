"""Places the arena for one set of sizes after the other: a placement that was planned is stretched to other sizes.

Pure arithmetic: no device. All offsets and sizes of a valid placement may be multiplied by one factor; so where the
factor is the largest by which a buffer has grown, the stretched placement holds all of them. It is taken where it is
about as tight as the one that it comes from, where it takes little, or no more than a placement has taken before and
not twice what is needed; else the sizes are planned anew.

Buffers whose borders can be written again share memory with any others where that saves some; then it is said which
borders have to be written in each run. Small arenas stay as they are: there is nothing to gain.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mlirt.runtime.memory_planning import ALIGNMENT, MemoryPlan, Request, plan

_KEPT = 4
_LOOSER, _LOOSER_WITHIN_THE_LARGEST = 1.1, 2.0
_SMALL_UNITS = 1024  # units
# Borders are written again where so much of the arena is saved by it.
_SAVED = 0.05
_MAX_UNITS = 1 << 31  # units of the alignment, so that products of two fit 63 bits


@dataclass(frozen=True)
class _Planned:
    """A placement in units of the alignment, and its bytes for each byte that lives at once."""

    sizes: np.ndarray
    offsets: np.ndarray
    looseness: float
    rewritten: np.ndarray
    is_for_little: bool
    """Whether borders have slots of their own only because the arena was small."""

    @cached_property
    def divisors(self) -> np.ndarray:
        """The sizes; 1 where there is none."""
        return np.maximum(self.sizes, 1)

    @cached_property
    def empty(self) -> np.ndarray:
        """The buffers without bytes."""
        return np.flatnonzero(self.sizes == 0)

    @cached_property
    def all(self) -> int:
        """The sum of the sizes."""
        return int(self.sizes.sum())


class Placement(NamedTuple):
    """The offset of each buffer, the bytes that all need, and which borders other buffers write over."""

    offsets: np.ndarray
    total: int
    rewritten: np.ndarray


class Placements:
    """Offsets of buffers whose lifetimes and halo classes are known and whose sizes come with every shape."""

    def __init__(
        self,
        lives: Sequence[tuple[int, int]],
        halos: Sequence[str | None],
        rewritable: Sequence[bool] | None = None,
    ) -> None:
        """`rewritable` says whose border can be written again; without it that of none."""
        self._lives, self._halos = lives, halos
        self._rewritable = np.array([False] * len(lives) if rewritable is None else rewritable, bool)
        # In the order of time; at one step what is gone comes before what is born.
        events = [(first, 1, i) for i, (first, _) in enumerate(lives)]
        events += [(last + 1, -1, i) for i, (_, last) in enumerate(lives)]
        events.sort(key=lambda event: event[:2])
        self._events = np.array([i for _, _, i in events], np.intp)
        self._changes = np.array([change for _, change, _ in events], np.int64)
        classes: dict[str, list[int]] = {}
        for i, halo in enumerate(halos):
            if halo is not None:
                classes.setdefault(halo, []).append(i)
        self._classes = [np.array(members, np.intp) for members in classes.values()]
        self._planned: list[_Planned] = []
        self._largest = 0

    def place(self, sizes: np.ndarray) -> Placement:
        """Where buffers of these sizes lie; those of no bytes have the offset 0."""
        units = -(-sizes // ALIGNMENT)
        live = self._live_units(units)
        if self._can_stretch(sizes, units):
            for one in list(self._planned):
                offsets = _stretched(one, units)
                if offsets is not None:
                    total = int((offsets + units).max(initial=0))
                    small_enough = not one.is_for_little or total <= _least_to_share(live)
                    if small_enough and self._is_tight(total, one.looseness * live):
                        self._largest = max(self._largest, total)
                        return Placement(np.where(sizes > 0, offsets, 0) * ALIGNMENT, total * ALIGNMENT, one.rewritten)
        chosen, rewritten, is_for_little = self._plan(sizes, live)
        offsets = np.array(chosen.offsets, np.int64)
        self._largest = max(self._largest, chosen.total // ALIGNMENT)
        looseness = chosen.total // ALIGNMENT / live if live else 1.0
        planned = _Planned(units, offsets // ALIGNMENT, looseness, rewritten, is_for_little)
        self._planned = [planned, *self._planned[: _KEPT - 1]]
        return Placement(offsets, chosen.total, rewritten)

    def _is_tight(self, total: int, needed: float) -> bool:
        within = total <= self._largest and total <= _LOOSER_WITHIN_THE_LARGEST * needed
        return total <= _SMALL_UNITS or total <= _LOOSER * needed or within

    def _plan(self, sizes: np.ndarray, live: float) -> tuple[MemoryPlan, np.ndarray, bool]:
        """The smallest placement, which borders have to be written again, and whether larger sizes may share more."""
        none = np.zeros(len(sizes), bool)
        apart = self._planned_with(sizes, self._halos)
        if not self._rewritable.any():
            return apart, none, False
        if apart.total // ALIGNMENT <= _least_to_share(live):
            return apart, none, True
        free = [None if can else halo for can, halo in zip(self._rewritable.tolist(), self._halos, strict=True)]
        shared = self._planned_with(sizes, free)
        if shared.total > (1 - _SAVED) * apart.total:
            return apart, none, False
        return shared, self._rewritable & self._written_over(sizes, np.array(shared.offsets, np.int64)), False

    def _planned_with(self, sizes: np.ndarray, halos: Sequence[str | None]) -> MemoryPlan:
        found = zip(sizes.tolist(), self._lives, halos, strict=True)
        return plan([Request(size, first, last, halo) for size, (first, last), halo in found])

    def _written_over(self, sizes: np.ndarray, offsets: np.ndarray) -> np.ndarray:
        """Which buffers share bytes with one that is not of the same halo class and at the same offset."""
        held = sizes > 0
        starts, ends = np.sort(offsets[held]), np.sort((offsets + sizes)[held])
        before = np.searchsorted(ends, offsets, "right")
        behind = len(starts) - np.searchsorted(starts, offsets + sizes, "left")
        places = list(zip(self._halos, offsets.tolist(), strict=True))
        slots = Counter(place for place, has in zip(places, held.tolist(), strict=True) if has)
        alike = np.array([slots[place] for place in places], np.int64)
        return held & (len(starts) - before - behind > alike)

    def largest_live_set(self, sizes: np.ndarray) -> int:
        """The most bytes that are alive at once."""
        return int(self._live_units(-(-sizes // ALIGNMENT))) * ALIGNMENT

    def _live_units(self, units: np.ndarray) -> float:
        return float(np.cumsum(units[self._events] * self._changes).max(initial=0))

    def _can_stretch(self, sizes: np.ndarray, units: np.ndarray) -> bool:
        """Whether numbers stay small, and the members of each halo class are of one size."""
        if int(units.sum()) >= _MAX_UNITS:
            return False
        for members in self._classes:
            given = sizes[members]
            if bool((given != given[0]).any()) and len(set(given.tolist()) - {0}) > 1:
                return False
        return True


def _least_to_share(live: float) -> float:
    """How large an arena is, in units, of which sharing memory may save some that counts."""
    return max(_SMALL_UNITS, live / (1 - _SAVED))


def _stretched(one: _Planned, units: np.ndarray) -> np.ndarray | None:
    """The offsets of a placement times the largest growth of a buffer; None where one has grown from nothing."""
    if one.all >= _MAX_UNITS or (len(one.empty) and bool((units[one.empty] > 0).any())):
        return None
    grown = int(np.argmax(units / one.divisors)) if len(units) else 0
    above, below = (int(units[grown]), int(one.sizes[grown])) if len(units) else (0, 1)
    if not above:
        return np.zeros_like(units)
    if bool((units * below > above * one.sizes).any()):
        return None
    return -(-one.offsets * above // below)
