"""Numbers the launches of a host program, and says between which of them each loop and each look at memory lies."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from xdsl.ir import Operation, Region

from mlirt.dialects.plan.control import Control, IfOp, WhileOp, ops_in
from mlirt.dialects.plan.ops import LaunchOp


@dataclass(frozen=True)
class LoopSpan:
    """The launches of a loop, both included, and everything inside of it, itself too."""

    first: int
    last: int
    inside: frozenset[Operation]


@dataclass
class StepNumbers:
    """The time of each op of a host program, counted in launches in the order of the text."""

    launches: list[LaunchOp] = field(default_factory=list[LaunchOp])
    at: dict[Operation, int] = field(default_factory=dict[Operation, int])
    loops: list[LoopSpan] = field(default_factory=list[LoopSpan])

    @staticmethod
    def of(ops: Iterable[Operation]) -> StepNumbers:
        numbers = StepNumbers()
        numbers._walk(ops, 0)
        return numbers

    def _walk(self, ops: Iterable[Operation], start: int) -> None:
        """`start` is the first launch of the innermost loop."""
        for op in ops:
            if isinstance(op, LaunchOp):
                self.at[op] = len(self.launches)
                self.launches.append(op)
            elif isinstance(op, WhileOp):
                self._loop(op, start)
            elif isinstance(op, Control):
                self.at[op] = max(start, len(self.launches) - 1)
                for region in op.regions:
                    self._walk(ops_in(region), start)

    def _loop(self, op: WhileOp, start: int) -> None:
        first = len(self.launches)
        self._walk(ops_in(op.before), first)
        self.at[op] = max(len(self.launches) - 1, min(first, start))
        self._walk(ops_in(op.body), first)
        if len(self.launches) > first:
            self.at[op] = max(self.at[op], first)
            self.loops.append(LoopSpan(first, len(self.launches) - 1, frozenset(op.walk())))

    def lifetime(self, uses: Iterable[Operation], *, is_returned: bool = False) -> tuple[int, int]:
        """The first and the last launch between which a buffer with these uses holds what somebody still reads.

        What is used in a loop and outside of it, or returned, lives through all iterations of the loop.
        """
        users = list(uses)
        steps = [self.at[user] for user in users]
        first, last = min(steps, default=0), max(steps, default=0)
        for loop in self.loops:
            within = [user in loop.inside for user in users]
            if any(within) and (is_returned or not all(within)):
                first, last = min(first, loop.first), max(last, loop.last)
        return first, last


def regions_of(op: IfOp | WhileOp) -> tuple[Region, Region]:
    """Both regions, in the order of their launches."""
    return (op.then, op.otherwise) if isinstance(op, IfOp) else (op.before, op.body)
