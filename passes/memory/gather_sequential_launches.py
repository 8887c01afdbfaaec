"""Brings launches that keep one worker busy for long side by side, so that each worker can have one of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from mlirt.dialects.plan.ops import LaunchOp
from mlirt.passes.memory.launch_dependences import (
    Written,
    dependences,
    is_declaration,
    stretches,
    written_by_kernel,
)
from mlirt.passes.options import option


@dataclass(frozen=True)
class GatherSequentialLaunchesPass(ModulePass):
    """Let a launch that is marked `sequential` follow an earlier one at once, if it needs nothing of it.

    Such launches are recurrent layers with few sequences, and those of both directions are independent. What the later
    one needs is moved in front of the earlier one, in its order; at most `most` come together.

    Before:

        plan.launch %x, %p {kernel = @project, ..}
        plan.launch %p, %a {kernel = @forwards, .., sequential}
        plan.launch %x, %q {kernel = @project, ..}
        plan.launch %q, %b {kernel = @backwards, .., sequential}

    After:

        plan.launch %x, %p {kernel = @project, ..}
        plan.launch %x, %q {kernel = @project, ..}
        plan.launch %p, %a {kernel = @forwards, .., sequential}
        plan.launch %q, %b {kernel = @backwards, .., sequential}
    """

    name = "gather-sequential-launches"

    most: int = option(8, at_least=1)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        written = written_by_kernel(op.body.block.ops)
        launches = [one for one in op.walk() if isinstance(one, LaunchOp)]
        for block in dict.fromkeys(launch.parent for launch in launches if launch.sequential is not None):
            if block is not None:
                self._gather(block, written)

    def _gather(self, block: Block, written: Written) -> None:
        for launches in list(stretches(block)):
            order = self._order(launches, dependences(launches, written))
            if order != list(range(len(launches))):
                _arrange(block, launches, order)

    def _order(self, launches: Sequence[LaunchOp], needs: Sequence[set[int]]) -> list[int]:
        """The launches in their new order."""
        order: list[int] = []
        sequential = [number for number, launch in enumerate(launches) if launch.sequential is not None]
        placed: set[int] = set()
        for number in range(len(launches)):
            if number in placed:
                continue
            together = [number]
            if number in sequential:
                for later in sequential:
                    if later > number and later not in placed and len(together) < self.most:
                        before = _ancestors(later, needs, placed)
                        if before.isdisjoint(together):
                            order += sorted(before)
                            placed |= before
                            together.append(later)
            order += together
            placed.update(together)
        return order


def _ancestors(number: int, needs: Sequence[set[int]], placed: set[int]) -> set[int]:
    """All that a launch needs and that has no place yet."""
    found: set[int] = set()
    waiting = list(needs[number])
    while waiting:
        one = waiting.pop()
        if one not in placed and one not in found:
            found.add(one)
            waiting += needs[one]
    return found


def _arrange(block: Block, launches: Sequence[LaunchOp], order: Sequence[int]) -> None:
    """Memory is declared in front of all launches of the stretch, where every order finds it."""
    anchor, last = launches[0], launches[-1]
    op = anchor.next_op
    while op is not None and op is not last:
        following = op.next_op
        if is_declaration(op):
            op.detach()
            block.insert_op_before(op, anchor)
        op = following
    after = last.next_op
    for launch in launches:
        launch.detach()
    for number in order:
        if after is None:
            block.add_op(launches[number])
        else:
            block.insert_op_before(launches[number], after)
