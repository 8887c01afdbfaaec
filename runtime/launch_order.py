"""Which launches must wait for which: the order of a plan, less what touches different memory or only reads it.

Pure arithmetic: no device. Launches that share memory keep their order if one of them writes it. That covers the data
that flows between them as well as memory that is used again for something else.
"""

from collections.abc import Sequence
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

    def meets(self, other: "Access") -> bool:
        """Whether both may touch one byte."""
        if self.start >= other.end or other.start >= self.end:
            return False
        if (self.start, self.end) != (other.start, other.end):
            return True
        return all(one == another for one, another in zip(self.part, other.part, strict=False))

    def covers(self, other: "Access") -> bool:
        """Whether this touches all that the other one does."""
        if (self.start, self.end) == (other.start, other.end):
            return other.part[: len(self.part)] == self.part
        return not self.part and self.start <= other.start and other.end <= self.end


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
        self._pieces: list[tuple[Access, int]] = []

    def conflicts(self, accesses: Sequence[Access]) -> set[int]:
        return {
            who
            for access in accesses
            for piece, who in self._pieces
            if (access.writes or piece.writes) and access.meets(piece)
        }

    def note(self, number: int, accesses: Sequence[Access]) -> None:
        """Whoever touched what is now written was waited for, so that it need not be remembered."""
        written = [access for access in accesses if access.writes]
        if written:
            self._pieces = [piece for piece in self._pieces if not any(access.covers(piece[0]) for access in written)]
        self._pieces += [(access, number) for access in accesses]


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
