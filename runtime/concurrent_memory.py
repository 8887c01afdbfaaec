"""Places buffers so that no launch waits for another one only because it takes over that one's memory.

Pure arithmetic: no device. Two buffers share memory if all launches that touch the one come before all that touch the
other by the data alone, and so wherever launches run side by side theirs lie apart.
"""

from collections.abc import Collection, Sequence
from itertools import accumulate

from mlirt.runtime.launch_order import Access, predecessors
from mlirt.runtime.memory_planning import MemoryPlan, aligned, place_apart

Use = tuple[int, bool, tuple[int, ...]]
"""A buffer that a launch touches, whether it may write it, and which part of it."""


def plan_side_by_side(
    sizes: Sequence[int], launches: Sequence[Sequence[Use]], placed: Sequence[int], kept: Collection[int]
) -> MemoryPlan:
    """An offset for each of the buffers to be `placed`, of all whose bytes are given; `kept` ones are read at the end.

    The launches are in the order of the plan.
    """
    starts = [0, *accumulate(map(aligned, sizes))]
    accesses = [
        [Access(starts[buffer], starts[buffer] + sizes[buffer], writes, part) for buffer, writes, part in uses]
        for uses in launches
    ]
    before = _all_before(predecessors(accesses))
    users = [1 << len(launches) if buffer in kept else 0 for buffer in range(len(sizes))]
    over = [-1] * len(sizes)  # for each buffer, as bits, the launches that are over before any touches it
    for number, uses in enumerate(launches):
        for buffer, _, _ in uses:
            users[buffer] |= 1 << number
            over[buffer] &= before[number]

    def together(one: int, other: int) -> bool:
        one, other = placed[one], placed[other]
        return bool(users[one] & ~over[other] and users[other] & ~over[one])

    first = [users[buffer] & -users[buffer] for buffer in placed]
    own = [sizes[buffer] for buffer in placed]
    return place_apart(own, sorted(range(len(own)), key=lambda k: (-own[k], first[k], k)), together)


def _all_before(waits: Sequence[Sequence[int]]) -> list[int]:
    """For each launch, as bits, all that are over when it starts."""
    before: list[int] = []
    for needed in waits:
        before.append(0)
        for earlier in needed:
            before[-1] |= before[earlier] | 1 << earlier
    return before
