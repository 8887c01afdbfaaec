"""What the threads of a team tell each other in a scan: what those before each of them have, and what all have."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import LoadOp, StoreOp
from mlirt.dialects.kernel.simt import WARP, BarrierOp, SharedOp, ShuffleOp
from mlirt.passes.lowering.kernel_builder import KernelBuilder

Combine = Callable[[SSAValue, SSAValue], SSAValue]


class TeamExchange:
    """A team of `size` threads, a part of a warp or a block; `member` is the number of a thread in it.

    `combine` must not depend on the order of its operands; with `neutral` it gives the other one. At most `most` values
    are exchanged at a time.
    """

    def __init__(
        self, k: KernelBuilder, member: SSAValue, size: int, most: int, combine: Combine, neutral: SSAValue
    ) -> None:
        self.k, self.member, self.size, self.combine, self.neutral = k, member, size, combine, neutral
        self.warps = size // WARP
        if self.warps > 1:
            self.lane, self.warp = k.rem(member, WARP), k.div(member, WARP)
            self.shared = k.value(SharedOp(most * self.warps, neutral.type))

    def of(self, own: Sequence[SSAValue]) -> tuple[list[SSAValue], list[SSAValue]]:
        """For each of a thread's values what those of the threads before it come to, and what those of all come to."""
        k, warps = self.k, self.warps
        earlier, totals = self._in_warp(own, self.member, min(self.size, WARP))
        if warps <= 1:
            return earlier, totals
        places = [k.add(number * warps, self.warp) for number in range(len(own))]
        k.when(k.compare("eq", self.lane, 0), lambda: self._put(totals, places))
        k.insert(BarrierOp())
        inside = k.compare("slt", self.lane, warps)
        others = [k.add(number * warps, self.lane) for number in range(len(own))]
        found = [k.guarded(inside, lambda place=place: self._get(place), self.neutral) for place in others]
        # Every warp does the same for all warps, and the first one writes down what is before each.
        left, all_of_them = self._in_warp(found, self.lane, WARP)
        k.insert(BarrierOp())
        first = k.both(inside, k.compare("eq", self.warp, 0))
        assert first is not None
        k.when(first, lambda: self._put(left, others))
        k.insert(BarrierOp())
        before = [self._get(place) for place in places]
        k.insert(BarrierOp())
        return [self.combine(a, b) for a, b in zip(before, earlier, strict=True)], all_of_them

    def _put(self, values: Sequence[SSAValue], places: Sequence[SSAValue]) -> None:
        for value, place in zip(values, places, strict=True):
            self.k.insert(StoreOp(value, self.shared, [place], [1]))

    def _get(self, place: SSAValue) -> SSAValue:
        return self.k.value(LoadOp(self.shared, [place], [1]))

    def _in_warp(self, own: Sequence[SSAValue], member: SSAValue, size: int) -> tuple[list[SSAValue], list[SSAValue]]:
        """The same among `size` threads of a warp: pairs first, then pairs of pairs."""
        k, earlier, totals, step = self.k, [self.neutral] * len(own), list(own), 1
        while step < size:
            is_right = k.compare("ne", k.rem(k.div(member, step), 2), 0)
            for number, total in enumerate(totals):
                other = k.value(ShuffleOp(total, step))
                earlier[number] = k.select(is_right, self.combine(other, earlier[number]), earlier[number])
                totals[number] = self.combine(total, other)
            step *= 2
        return earlier, totals


__all__ = ["TeamExchange"]
