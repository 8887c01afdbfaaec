"""What the threads of a team tell each other in a scan: what those before each of them have, and what all have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from mlirt.dialects.kernel.simt import WARP
from mlirt.kernels.lib.language import Index, Value, kernel
from mlirt.kernels.lib.language.combine_words import Combiner
from mlirt.kernels.lib.language.simt_words import shared_memory, shuffle_xor, sync_threads
from mlirt.kernels.lib.language.words import static_range


@dataclass(frozen=True, eq=False)
class Warps:
    """The `count` warps of a team: a thread's lane and warp, and memory for what their threads come to."""

    count: int
    lane: Value
    warp: Value
    shared: Value


@dataclass(frozen=True, eq=False)
class TeamExchange:
    """A team of `size` threads, a part of a warp or a block; `member` is the number of a thread in it.

    The combine of single numbers must not depend on the order of its operands.
    """

    member: Value
    size: int
    combiner: Combiner
    warps: Warps | None

    @property
    def neutral(self) -> Value:
        """What no element comes to."""
        (neutral,) = self.combiner.neutral
        return neutral

    @kernel
    def of(self, own: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """For each of a thread's values what those of the threads before it come to, and what those of all come to."""
        earlier, totals = self._in_warp(own, self.member, min(self.size, WARP))
        if self.warps is not None:
            warps, lane, warp, shared = self.warps.count, self.warps.lane, self.warps.warp, self.warps.shared
            own_places = [number * warps + warp for number in static_range(len(own))]
            if lane == 0:
                for at, total in zip(own_places, totals, strict=True):
                    shared[at] = total
            sync_threads()
            inside = lane < warps
            places = [number * warps + lane for number in static_range(len(own))]

            def total_at(at: Index) -> Value:
                total = self.neutral
                if inside:
                    total = shared[at]
                return total

            # Every warp does the same for all warps, and the first one writes down what is before each.
            left, totals = self._in_warp([total_at(at) for at in places], lane, WARP)
            sync_threads()
            if inside and warp == 0:
                for at, value in zip(places, left, strict=True):
                    shared[at] = value
            sync_threads()
            before = [shared[at] for at in own_places]
            sync_threads()
            earlier = [self.combiner.of(a, b) for a, b in zip(before, earlier, strict=True)]
        return earlier, totals

    @kernel
    def _in_warp(self, own: Sequence[Value], member: Value, size: int) -> tuple[list[Value], list[Value]]:
        """The same among `size` threads of a warp: pairs first, then pairs of pairs."""
        earlier, totals = [self.neutral for _ in own], list(own)
        for bit in static_range(size.bit_length() - 1):
            is_right = member // (1 << bit) % 2 != 0
            for number, total in enumerate(totals):
                other = shuffle_xor(total, 1 << bit)
                earlier[number] = self.combiner.of(other, earlier[number]) if is_right else earlier[number]
                totals[number] = self.combiner.of(total, other)
        return earlier, totals


@kernel
def team_exchange(member: Value, size: int, most: int, combiner: Combiner) -> TeamExchange:
    """The exchange of a team; at most `most` values are exchanged at a time."""
    count, (neutral,) = size // WARP, combiner.neutral
    warps = None
    if count > 1:
        lane, warp = member % WARP, member // WARP
        warps = Warps(count, lane, warp, shared_memory("totals", most * count, neutral.type))
    return TeamExchange(member, size, combiner, warps)


__all__ = ["TeamExchange", "team_exchange"]
