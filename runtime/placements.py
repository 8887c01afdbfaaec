"""Places the arena for one set of sizes after the other: a placement that was planned is stretched to other sizes.

Pure arithmetic: no device. All offsets and sizes of a valid placement may be multiplied by one factor; so where the
factor is the largest by which a buffer has grown, the stretched placement holds all of them. It is taken where it is
about as tight as the one that it comes from, where it takes little, or no more than a placement has taken before and
not twice what is needed; else the sizes are planned anew.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mlirt.runtime.memory_planning import ALIGNMENT, MemoryPlan, Request, plan

_KEPT = 4
_LOOSER, _LOOSER_WITHIN_THE_LARGEST = 1.1, 2.0
_LITTLE = 1024  # units
_LARGEST = 1 << 31  # units of the alignment, so that products of two fit 63 bits


@dataclass(frozen=True)
class _Planned:
    """A placement in units of the alignment, and its bytes for each byte that lives at once."""

    sizes: np.ndarray
    offsets: np.ndarray
    looseness: float


class Placements:
    """Offsets of buffers whose lifetimes and halo classes are known and whose sizes come with every shape."""

    def __init__(self, lives: Sequence[tuple[int, int]], halos: Sequence[str | None]) -> None:
        self._lives, self._halos = lives, halos
        self._first = np.array([first for first, _ in lives], np.intp)
        self._behind = np.array([last + 1 for _, last in lives], np.intp)
        self._steps = int(self._behind.max(initial=0)) + 1
        classes: dict[str, list[int]] = {}
        for i, halo in enumerate(halos):
            if halo is not None:
                classes.setdefault(halo, []).append(i)
        self._classes = [np.array(members, np.intp) for members in classes.values()]
        self._planned: list[_Planned] = []
        self._largest = 0

    def place(self, sizes: np.ndarray) -> tuple[np.ndarray, int]:
        """The offset of each buffer, and the bytes that all need; buffers of no bytes have the offset 0."""
        units = -(-sizes // ALIGNMENT)
        live = self._largest_live_set(units)
        if self._can_stretch(sizes, units):
            for one in list(self._planned):
                offsets = _stretched(one, units)
                if offsets is not None:
                    total = int((offsets + units).max(initial=0))
                    if self._is_tight(total, one.looseness * live):
                        self._largest = max(self._largest, total)
                        return np.where(sizes > 0, offsets, 0) * ALIGNMENT, total * ALIGNMENT
        chosen = self._plan(sizes)
        offsets = np.array(chosen.offsets, np.int64)
        self._largest = max(self._largest, chosen.total // ALIGNMENT)
        looseness = chosen.total // ALIGNMENT / live if live else 1.0
        self._planned = [_Planned(units, offsets // ALIGNMENT, looseness), *self._planned[: _KEPT - 1]]
        return offsets, chosen.total

    def _is_tight(self, total: int, needed: float) -> bool:
        within = total <= self._largest and total <= _LOOSER_WITHIN_THE_LARGEST * needed
        return total <= _LITTLE or total <= _LOOSER * needed or within

    def _plan(self, sizes: np.ndarray) -> MemoryPlan:
        found = zip(sizes.tolist(), self._lives, self._halos, strict=True)
        return plan([Request(size, first, last, halo) for size, (first, last), halo in found])

    def _largest_live_set(self, units: np.ndarray) -> float:
        born = np.bincount(self._first, units, self._steps)
        gone = np.bincount(self._behind, units, self._steps)
        return float(np.cumsum(born - gone).max(initial=0.0))

    def _can_stretch(self, sizes: np.ndarray, units: np.ndarray) -> bool:
        """Whether numbers stay small, and the members of each halo class are of one size."""
        if int(units.sum()) >= _LARGEST:
            return False
        return all(len(set(sizes[members].tolist()) - {0}) <= 1 for members in self._classes)


def _stretched(one: _Planned, units: np.ndarray) -> np.ndarray | None:
    """The offsets of a placement times the largest growth of a buffer; None where one has grown from nothing."""
    if bool(np.any((one.sizes == 0) & (units > 0))) or int(one.sizes.sum()) >= _LARGEST:
        return None
    grown = int(np.argmax(units / np.maximum(one.sizes, 1))) if len(units) else 0
    above, below = (int(units[grown]), int(one.sizes[grown])) if len(units) else (0, 1)
    if not above:
        return np.zeros_like(units)
    if bool(np.any(units * below > above * one.sizes)):
        return None
    return -(-one.offsets * above // below)
