"""Buffer assignment: places buffers with known lifetimes in one arena so that no two that live at once overlap.

Pure arithmetic: no IR, no device. `plan` chooses offsets (the tightest of a few orders, best-fitting gap), `verify`
proves a choice.
A buffer with a `halo` class relies on border cells that are zeroed only once: it shares memory only with buffers of its
class, and then exactly cell for cell; so a class is a set of equal slots that nothing else ever uses.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from itertools import accumulate
from typing import NamedTuple

ALIGNMENT = 256
# Up to so many pairs of buffers that meet, and so many for each buffer, each one is held against all that it meets.
_PAIRS, _PAIRS_EACH = 1 << 16, 64
# With so many pairs at most, other orders are tried where the first one takes more than this of what is alive at once.
_PAIRS_OF_ORDERS, _TIGHT = 1 << 12, 1.05


class MemoryPlanError(ValueError):
    """The requests contradict each other, or the offsets let two live buffers overlap."""


class Request(NamedTuple):
    """A buffer: its size in bytes, the first and last step (both included) at which it is alive, its halo class."""

    size: int
    first: int
    last: int
    halo: str | None = None


@dataclass(frozen=True)
class MemoryPlan:
    """Where each request lies, and the bytes that all of them need together."""

    offsets: tuple[int, ...]
    total: int


@dataclass(frozen=True)
class Placed:
    offset: int
    size: int


def aligned(size: int) -> int:
    """`size` rounded up to the alignment of the arena."""
    return -(-size // ALIGNMENT) * ALIGNMENT


def plan(requests: Sequence[Request]) -> MemoryPlan:
    """Choose an offset, a multiple of `ALIGNMENT`, for every request; requests of size 0 get offset 0.

    The largest buffer comes first, into the best gap between those that it meets; where that is not tight, those that
    are alive when most is, or those that take most for longest. Where there are very many pairs of buffers that meet,
    as where thousands are alive at once, buffers come by time into what is free then instead.
    """
    _check(requests)
    offsets = [0] * len(requests)
    base = 0
    for members in _halo_classes(requests).values():
        base = _place_slots(requests, members, offsets, base)
    plain = [i for i, request in enumerate(requests) if request.halo is None and request.size > 0]
    pairs = _pairs(requests, plain)
    if pairs > _PAIRS + _PAIRS_EACH * len(plain):
        _place_by_time(requests, plain, offsets, base)
        return MemoryPlan(tuple(offsets), _end(requests, plain, offsets, base))
    _place_in_gaps(requests, sorted(plain, key=lambda i: (-requests[i].size, requests[i].first, i)), offsets, base)
    found = MemoryPlan(tuple(offsets), _end(requests, plain, offsets, base))
    return found if pairs > _PAIRS_OF_ORDERS else _tightest(requests, plain, found, base)


def _end(requests: Sequence[Request], members: Sequence[int], offsets: Sequence[int], base: int) -> int:
    return max((offsets[i] + aligned(requests[i].size) for i in members), default=base)


def _tightest(requests: Sequence[Request], members: Sequence[int], found: MemoryPlan, base: int) -> MemoryPlan:
    """A plan, or the tightest of those by other orders where it is not tight."""
    alive = _alive(requests, members)
    tight = base + _TIGHT * max(alive, default=0)
    for order in _orders(requests, members, alive) if found.total > tight else ():
        offsets = list(found.offsets)
        _place_in_gaps(requests, order, offsets, base)
        total = _end(requests, members, offsets, base)
        if total < found.total:
            found = MemoryPlan(tuple(offsets), total)
        if total <= tight:
            break
    return found


def _alive(requests: Sequence[Request], members: Sequence[int]) -> list[int]:
    """The bytes that are alive at each step."""
    changes = [0] * (max((requests[i].last for i in members), default=-1) + 2)
    for i in members:
        changes[requests[i].first] += aligned(requests[i].size)
        changes[requests[i].last + 1] -= aligned(requests[i].size)
    return list(accumulate(changes))


def _orders(requests: Sequence[Request], members: Sequence[int], alive: Sequence[int]) -> Iterator[list[int]]:
    """Those first that are alive when most is, and for long; those that take most for longest; large ones, by powers of
    two, that live for long.
    """
    lengths = {i: requests[i].last - requests[i].first + 1 for i in members}
    most = {i: max(alive[requests[i].first : requests[i].last + 1]) for i in members}
    sizes = {i: requests[i].size for i in members}
    yield sorted(members, key=lambda i: (-most[i], -lengths[i], -sizes[i], i))
    yield sorted(members, key=lambda i: (-sizes[i] * lengths[i], i))
    yield sorted(members, key=lambda i: (-sizes[i].bit_length(), -lengths[i], -sizes[i], i))


def _pairs(requests: Sequence[Request], members: Sequence[int]) -> int:
    """How many pairs of requests are alive together, each with itself as well."""
    starts = sorted(requests[i].first for i in members)
    ends = sorted(requests[i].last for i in members)
    return sum(bisect_right(starts, last) for last in ends) - sum(bisect_left(ends, first) for first in starts)


def _place_in_gaps(requests: Sequence[Request], members: Sequence[int], offsets: list[int], base: int) -> None:
    """In this order, each into the smallest gap that fits between those that it meets.

    Steps are those at which a buffer is born. For each of them it is known who lives and who is born then.
    """
    births = sorted({requests[i].first for i in members})
    living: list[list[Placed]] = [[] for _ in births]
    born: list[list[Placed]] = [[] for _ in births]
    for i in members:
        request = requests[i]
        start, end = bisect_left(births, request.first), bisect_right(births, request.last)
        met = [*living[start], *(one for step in range(start + 1, end) for one in born[step])]
        size = aligned(request.size)
        offsets[i] = best_gap(sorted(met, key=_offset), size, base)
        placed = Placed(offsets[i], size)
        born[start].append(placed)
        for step in range(start, end):
            living[step].append(placed)


def _place_by_time(requests: Sequence[Request], members: Sequence[int], offsets: list[int], base: int) -> None:
    """In the order of their births, each into the smallest piece of memory that is free and fits."""
    free = _FreeMemory(base)
    busy: list[tuple[int, int]] = []
    for i in sorted(members, key=lambda i: (requests[i].first, -requests[i].size, i)):
        while busy and busy[0][0] < requests[i].first:
            gone = heappop(busy)[1]
            free.give_back(offsets[gone], aligned(requests[gone].size))
        offsets[i] = free.take(aligned(requests[i].size))
        heappush(busy, (requests[i].last, i))


class _FreeMemory:
    """Pieces that nobody uses, by size and by where they start and end; there is more behind `top`."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._by_size: list[tuple[int, int]] = []
        self._ends: dict[int, int] = {}
        self._starts: dict[int, int] = {}

    def take(self, size: int) -> int:
        """Where the smallest piece of at least `size` bytes starts; else what ends at the top is made longer."""
        found = bisect_left(self._by_size, (size, 0))
        if found < len(self._by_size):
            start = self._by_size[found][1]
            length = self._remove(start)
            if length > size:
                self._add(start + size, length - size)
            return start
        start = self._starts.get(self._top, self._top)
        if start < self._top:
            self._remove(start)
        self._top = start + size
        return start

    def give_back(self, start: int, size: int) -> None:
        """Join it with the free pieces on both sides."""
        if start in self._starts:
            before = self._starts[start]
            size += self._remove(before)
            start = before
        if start + size in self._ends:
            size += self._remove(start + size)
        self._add(start, size)

    def _add(self, start: int, size: int) -> None:
        insort(self._by_size, (size, start))
        self._ends[start], self._starts[start + size] = start + size, start

    def _remove(self, start: int) -> int:
        end = self._ends.pop(start)
        del self._starts[end]
        del self._by_size[bisect_left(self._by_size, (end - start, start))]
        return end - start


def place_apart(sizes: Sequence[int], order: Sequence[int], together: Callable[[int, int], bool]) -> MemoryPlan:
    """Place buffers in this order, each clear of those placed before it that are alive `together` with it."""
    offsets = [0] * len(sizes)
    placed: list[tuple[int, int]] = []
    for i in order:
        if sizes[i]:
            alive = [Placed(at, aligned(sizes[other])) for at, other in placed if together(i, other)]
            offsets[i] = best_gap(alive, aligned(sizes[i]), 0)
            insort(placed, (offsets[i], i))
    return MemoryPlan(tuple(offsets), max((at + aligned(sizes[i]) for at, i in placed), default=0))


def plan_apart(requests: Sequence[Request]) -> MemoryPlan:
    """Memory of its own for each buffer, one behind the other."""
    starts = [0, *accumulate(aligned(request.size) for request in requests)]
    return MemoryPlan(tuple(starts[:-1]), starts[-1])


def verify(requests: Sequence[Request], offsets: Sequence[int], total: int) -> None:
    """Raise MemoryPlanError, naming two requests, unless the offsets keep all live buffers apart and within `total`."""
    _check(requests)
    if len(offsets) != len(requests):
        raise MemoryPlanError(f"{len(requests)} buffers but {len(offsets)} offsets")
    end_of_time = max((request.last for request in requests), default=0)
    slots: set[tuple[str, int]] = set()
    lives: list[tuple[int, int, int, int, int]] = []
    for i, (request, offset) in enumerate(zip(requests, offsets, strict=True)):
        if offset < 0 or offset % ALIGNMENT or offset + request.size > total:
            raise MemoryPlanError(f"buffer {i}: offset {offset} is misaligned, or ends beyond {total} bytes")
        if request.size == 0:
            continue
        if request.halo is None:
            lives.append((request.first, request.last, offset, request.size, i))
        elif (request.halo, offset) not in slots:
            slots.add((request.halo, offset))
            lives.append((0, end_of_time, offset, request.size, i))
    _sweep(lives)
    _sweep_slots(requests, offsets)


def _sweep(lives: list[tuple[int, int, int, int, int]]) -> None:
    """Walk through time with the set of live intervals, sorted by offset; neighbours are all that can overlap."""
    active: list[tuple[int, int, int]] = []
    expiring: list[tuple[int, tuple[int, int, int]]] = []
    for first, last, offset, size, i in sorted(lives):
        while expiring and expiring[0][0] < first:
            ended = heappop(expiring)[1]
            del active[bisect_left(active, ended)]
        entry = (offset, offset + size, i)
        at = bisect_left(active, entry)
        if at < len(active) and active[at][0] < entry[1]:
            raise MemoryPlanError(f"buffers {active[at][2]} and {i} are alive together and overlap")
        if at > 0 and active[at - 1][1] > offset:
            raise MemoryPlanError(f"buffers {active[at - 1][2]} and {i} are alive together and overlap")
        active.insert(at, entry)
        heappush(expiring, (last, entry))


def _sweep_slots(requests: Sequence[Request], offsets: Sequence[int]) -> None:
    """Buffers of one halo class that share a slot must not be alive together."""
    busy: dict[tuple[str, int], int] = {}
    order = sorted((i for i, r in enumerate(requests) if r.halo is not None and r.size), key=lambda i: requests[i][1:3])
    for i in order:
        request = requests[i]
        key = (str(request.halo), offsets[i])
        if key in busy and requests[busy[key]].last >= request.first:
            raise MemoryPlanError(f"buffers {busy[key]} and {i} are alive together and overlap")
        busy[key] = i


def _check(requests: Sequence[Request]) -> None:
    sizes: dict[str, int] = {}
    for i, request in enumerate(requests):
        if request.size < 0 or not 0 <= request.first <= request.last:
            raise MemoryPlanError(f"buffer {i}: size {request.size} alive in [{request.first}, {request.last}]")
        if request.halo is not None and request.size and sizes.setdefault(request.halo, request.size) != request.size:
            raise MemoryPlanError(f"buffer {i}: halo class {request.halo!r} has buffers of different sizes")


def _halo_classes(requests: Sequence[Request]) -> dict[str, list[int]]:
    classes: dict[str, list[int]] = {}
    for i, request in enumerate(requests):
        if request.halo is not None and request.size > 0:
            classes.setdefault(request.halo, []).append(i)
    return classes


def _place_slots(requests: Sequence[Request], members: list[int], offsets: list[int], base: int) -> int:
    """Give the equal buffers of one class the fewest slots (interval colouring); return where the slots end."""
    free: list[int] = []
    busy: list[tuple[int, int]] = []
    for i in sorted(members, key=lambda i: (requests[i].first, i)):
        while busy and busy[0][0] < requests[i].first:
            heappush(free, heappop(busy)[1])
        if free:
            offsets[i] = heappop(free)
        else:
            offsets[i] = base
            base += aligned(requests[i].size)
        heappush(busy, (requests[i].last, offsets[i]))
    return base


def _offset(placed: Placed) -> int:
    return placed.offset


def best_gap(alive: Sequence[Placed], size: int, base: int) -> int:
    """Where the smallest gap of at least `size` bytes between the live buffers (by offset) starts, else their end."""
    best, best_size, cursor = -1, 0, base
    for other in alive:
        gap = other.offset - cursor
        if gap >= size and (best < 0 or gap < best_size):
            best, best_size = cursor, gap
        cursor = max(cursor, other.offset + other.size)
    return best if best >= 0 else cursor
