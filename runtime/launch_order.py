"""Which launches must wait for which: the order of a plan, less what touches different memory or only reads it.

Pure arithmetic: no device. Launches that share memory keep their order if one of them writes it. That covers the data
that flows between them as well as memory that is used again for something else.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Access:
    """Bytes from `start` to `end`, not included, that a launch reads, or perhaps writes."""

    start: int
    end: int
    writes: bool


def predecessors(launches: Sequence[Sequence[Access]]) -> list[tuple[int, ...]]:
    """For each launch the earlier ones that it must wait for, without those that they wait for in turn."""
    history = _History()
    before: list[int] = []  # for each launch the set, as bits, of those that are over when it is
    result: list[tuple[int, ...]] = []
    for number, all_accesses in enumerate(launches):
        accesses = [access for access in all_accesses if access.start < access.end]
        needed = history.conflicts(accesses)
        direct: list[int] = []
        covered = 0
        for earlier in sorted(needed, reverse=True):
            if not covered >> earlier & 1:
                direct.append(earlier)
                covered |= before[earlier] | 1 << earlier
        before.append(covered)
        result.append(tuple(sorted(direct)))
        history.note(number, accesses)
    return result


class _History:
    """Who touched which memory last: per piece of it the last writer, and the readers since."""

    def __init__(self) -> None:
        self._writes: list[tuple[int, int, int]] = []
        self._reads: list[tuple[int, int, int]] = []

    def conflicts(self, accesses: Sequence[Access]) -> set[int]:
        found: set[int] = set()
        for access in accesses:
            for pieces in (self._writes, self._reads) if access.writes else (self._writes,):
                found.update(who for start, end, who in pieces if start < access.end and access.start < end)
        return found

    def note(self, number: int, accesses: Sequence[Access]) -> None:
        """Whoever touched what is now written was waited for, so that it need not be remembered."""
        for access in accesses:
            if access.writes:
                self._writes = [piece for piece in self._writes if not _inside(piece, access)]
                self._reads = [piece for piece in self._reads if not _inside(piece, access)]
        for access in accesses:
            (self._writes if access.writes else self._reads).append((access.start, access.end, number))


def _inside(piece: tuple[int, int, int], access: Access) -> bool:
    return access.start <= piece[0] and piece[1] <= access.end


def lanes(waits: Sequence[Sequence[int]], most: int) -> list[int]:
    """A lane of at most `most` for each launch; launches of one lane follow each other, so that few waits cross lanes.

    A launch goes on in the lane of one that it waits for, if nobody has done so before, else in an idle lane, else in
    the lane that is behind most.
    """
    result: list[int] = []
    last: dict[int, int] = {}
    for number, needed in enumerate(waits):
        continued = [result[earlier] for earlier in reversed(needed) if last[result[earlier]] == earlier]
        if continued:
            lane = continued[0]
        elif len(last) < most:
            lane = len(last)
        else:
            lane = min(last, key=lambda one: last[one])
        result.append(lane)
        last[lane] = number
    return result
