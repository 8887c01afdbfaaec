"""The search for what a pattern matches: what is bound to names so far, and why it ends where it ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from xdsl.context import Context
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.locations import name_of

Captured: TypeAlias = "SSAValue | Operation | Attribute | None"
Then: TypeAlias = "Callable[[], bool]"
"""What is to be matched after this; True ends the search, False makes it try the next possibility."""

# So many ways to match are compared for the best reason why none will do.
_MAX_WAYS = 64


class Search:
    """One search at one op.

    With `explains` a condition that does not hold ends nothing: it is noted, so that among all ways in which the layers
    match there is one with the fewest failed conditions, whose first reason is `reason()`. Without, the search ends
    there. In both, layers that do not match end it.
    """

    def __init__(
        self, root: Operation, ctx: Context, explains: bool = False, analyses: dict[Any, Any] | None = None
    ) -> None:
        block = root.parent
        assert block is not None
        self.root, self.block, self.ctx, self.explains = root, block, ctx, explains
        self.analyses: dict[Any, Any] = {} if analyses is None else analyses
        """What is known of the block, by the function that finds it."""
        self.bound: dict[str, Captured] = {}
        self.lists: dict[str, list[Captured]] = {}
        self.ops: list[Operation] = []
        self.shared: list[Operation] = []
        self.depth = 0
        """How many ops are being matched, the root among them."""
        self._failed: list[str] = []
        self._best: tuple[int, str] | None = None
        self._deepest: tuple[int, str] = (0, "")
        self._missing = ""
        self._ways = 0

    def values_of(self, value: SSAValue) -> Sequence[SSAValue]:
        """The values that stand for one of the operands: itself, and in an e-graph all that are equal to it."""
        return (value,)

    def are_equal(self, one: Captured, other: Captured) -> bool:
        """Whether two values that are not the same are known to be equal."""
        return False

    def holds(self, op: Operation) -> bool:
        """Whether an op may be part of what matches."""
        return op.parent is self.block

    def bind(self, name: str, found: Captured, then: Then) -> bool:
        """Go on with `name` standing for `found`; a name that stands for something else already matches nothing."""
        if not name:
            return then()
        if name in self.bound:
            is_same = self.bound[name] == found or self.are_equal(self.bound[name], found)
            return then() if is_same else self.mismatch(lambda: f"{name} stands for two things")
        self.bound[name] = found
        if then():
            return True
        del self.bound[name]
        return False

    def collect(self, name: str, found: Captured, then: Then) -> bool:
        """Go on with `found` as one more of those that `name` stands for."""
        if not name:
            return then()
        self.lists.setdefault(name, []).append(found)
        if then():
            return True
        self.lists[name].pop()
        return False

    def visit(self, op: Operation, is_shared: bool, then: Then) -> bool:
        """Go on with `op` as one of those that match, behind those in front of it."""
        (self.shared if is_shared else self.ops).append(op)
        if then():
            return True
        (self.shared if is_shared else self.ops).pop()
        return False

    def require(self, holds: bool, reason: Callable[[], str], then: Then) -> bool:
        """Go on where a condition holds, or to learn which others do not."""
        if holds:
            return then()
        if not self.explains:
            return False
        self._failed.append(reason())
        found = then()
        self._failed.pop()
        return found

    def mismatch(self, reason: Callable[[], str]) -> bool:
        """The layers are others than those of the pattern."""
        if self.explains and self.depth > self._deepest[0]:
            self._deepest = (self.depth, reason())
        return False

    def misses(self, reason: str) -> bool:
        """There is nothing of what is looked for, which the rule says in these words; not if there are none."""
        self._missing = self._missing or reason
        return False

    def readers_are_inside(self, then: Then) -> bool:
        """Go on where nothing but the matched ops reads what those in front of the root compute."""
        for op in self.ops:
            if op is not self.root and not all(self._only_inside(value) for value in op.results):
                return self.require(False, lambda op=op: f"{name_of(op)} has other readers", then)
        return then()

    def _only_inside(self, value: SSAValue) -> bool:
        return all(any(use.operation is op for op in (*self.ops, *self.shared)) for use in value.uses)

    def weigh(self) -> bool:
        """At the end of one way to match: keep its reason if it is the best, and see the next."""
        if self._failed and (self._best is None or len(self._failed) < self._best[0]):
            self._best = (len(self._failed), self._failed[0])
        self._ways += 1
        return self._ways >= _MAX_WAYS

    def reason(self) -> str | None:
        """Which condition keeps the layers that match from being rewritten; None where the layers are others."""
        return None if self._best is None else self._best[1]

    def near_miss(self) -> str | None:
        """What stands in the place of a layer that is looked for, where at least two others were found."""
        depth, text = self._deepest
        if self._ways:
            return None
        return self._missing or (text if depth > 1 else None)


def named(owner: Operation | Block) -> str:
    """What a reason calls that which computes a value."""
    if isinstance(owner, Block):
        return "an input"
    name = name_of(owner)
    return owner.name if name == owner.name else f"{name} ({owner.name})"
