"""Dependences of launches at run time: the order of a plan, less what touches different memory or only reads it.

Pure arithmetic: no device. Launches that share memory keep their order if one of them writes it. That covers the data
that flows between them as well as memory that is used again for something else.
"""

from bisect import bisect_left, insort
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Access:
    """Bytes from `start` to `end`, not included, that a launch reads, or perhaps writes.

    Two accesses of the same bytes with a `part` have none in common, unless one part begins with the other.
    """

    start: int
    end: int
    writes: bool
    part: tuple[int, ...] = ()


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


class _Part:
    """A part of a range of bytes: who touched it since it was last written, and the parts inside of it."""

    def __init__(self) -> None:
        self.readers: list[int] = []
        self.writers: list[int] = []
        self.inner: dict[int, _Part] = {}

    def met(self, part: Sequence[int], *, writes: bool) -> Iterator[int]:
        """The launches that an access must wait for: of the parts that hold its part, and of those inside of it."""
        at = self
        for number in part:
            yield from at._users(writes=writes)
            if number not in at.inner:
                return
            at = at.inner[number]
        inside = [at]
        while inside:
            one = inside.pop()
            yield from one._users(writes=writes)
            inside += one.inner.values()

    def note(self, launch: int, part: Sequence[int], *, writes: bool) -> None:
        at = self
        for number in part:
            at = at.inner.setdefault(number, _Part())
        (at.writers if writes else at.readers).append(launch)

    def forget(self, part: Sequence[int]) -> None:
        """What lies in a part is written, and all who touched it were waited for."""
        at = self
        for number in part:
            if number not in at.inner:
                return
            at = at.inner[number]
        at.readers, at.writers, at.inner = [], [], {}

    def _users(self, *, writes: bool) -> Iterator[int]:
        yield from self.writers
        if writes:
            yield from self.readers


class _History:
    """Who touched which memory last: per range of it the last writers, and the readers since.

    Ranges are found by where they start: those that meet an access start in front of its end, and no further in front
    of its start than the longest range is long.
    """

    def __init__(self) -> None:
        self._ranges: dict[tuple[int, int], _Part] = {}
        self._sorted: list[tuple[int, int]] = []
        self._longest = 0

    def conflicts(self, accesses: Sequence[Access]) -> set[int]:
        found: set[int] = set()
        for access in accesses:
            for key in self._meeting(access):
                part = access.part if key == (access.start, access.end) else ()
                found.update(self._ranges[key].met(part, writes=access.writes))
        return found

    def note(self, number: int, accesses: Sequence[Access]) -> None:
        """Whoever touched what is now written was waited for, so that it need not be remembered."""
        for access in accesses:
            if access.writes:
                self._forget(access)
        for access in accesses:
            key = access.start, access.end
            if key not in self._ranges:
                self._ranges[key] = _Part()
                insort(self._sorted, key)
                self._longest = max(self._longest, access.end - access.start)
            self._ranges[key].note(number, access.part, writes=access.writes)

    def _meeting(self, access: Access) -> Sequence[tuple[int, int]]:
        """The ranges that have bytes in common with an access."""
        low = bisect_left(self._sorted, (access.start - self._longest, access.start))
        high = bisect_left(self._sorted, (access.end, access.end))
        return [key for key in self._sorted[low:high] if key[1] > access.start]

    def _forget(self, access: Access) -> None:
        for key in self._meeting(access):
            if key == (access.start, access.end):
                self._ranges[key].forget(access.part)
            elif not access.part and access.start <= key[0] and key[1] <= access.end:
                del self._ranges[key]
                del self._sorted[bisect_left(self._sorted, key)]


def seats(blocks: Sequence[int], most: int) -> list[list[Access]]:
    """For launches whose blocks wait for each other what keeps so many of them apart that `most` blocks have room.

    `blocks` is 0 for other launches. One that needs more than half of the room runs without another such launch; of
    smaller ones two run side by side. The bytes that stand for the room lie in front of all memory.
    """
    found: list[list[Access]] = []
    next_half = 0
    for count in blocks:
        if not count:
            found.append([])
        elif 2 * count > most:
            found.append([Access(-2, 0, writes=True)])
        else:
            found.append([Access(-1 - next_half, -next_half, writes=True)])
            next_half = 1 - next_half
    return found


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
