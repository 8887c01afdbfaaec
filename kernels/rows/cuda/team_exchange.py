"""What the threads of a team tell each other in a scan: what those before each of them have, and what all have."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.kernel.simt import WARP
from mlirt.kernels.lib.language import Index, Value, builder, kernel
from mlirt.kernels.lib.language.combine_words import Combiner
from mlirt.kernels.lib.language.simt_words import shared_memory, shuffle_xor, sync_threads
from mlirt.kernels.lib.language.words import place, static_range


class TeamExchange:
    """A team of `size` threads, a part of a warp or a block; `member` is the number of a thread in it.

    The combine of single numbers must not depend on the order of its operands. At most `most` values are exchanged at a
    time.
    """

    def __init__(self, member: Value, size: int, most: int, combiner: Combiner) -> None:
        self.member, self.size, self.combiner, k = member, size, combiner, builder()
        (self.neutral,) = combiner.neutral
        self.warps = size // WARP
        if self.warps > 1:
            self.lane, self.warp = place(k.rem(member, WARP)), place(k.div(member, WARP))
            self.shared = shared_memory("totals", most * self.warps, self.neutral.type)

    @kernel
    def of(self, own: Sequence[Value]) -> tuple[list[Value], list[Value]]:
        """For each of a thread's values what those of the threads before it come to, and what those of all come to."""
        warps = self.warps
        earlier, totals = self._in_warp(own, self.member, min(self.size, WARP))
        if warps > 1:
            lane, warp, shared = self.lane, self.warp, self.shared
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


__all__ = ["TeamExchange"]
