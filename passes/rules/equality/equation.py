"""An equation: a rule whose outcome is equal to what matched, with the right of fast math that it needs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.ir import Operation, SSAValue
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.context import weights_of
from mlirt.dialects.fast_math import RIGHTS
from mlirt.dialects.locations import name_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.errors import InvalidInputError
from mlirt.passes.rules.equality.egraph import EGraph
from mlirt.passes.rules.equality.value_ranges import Interval, ValueRanges
from mlirt.passes.rules.match import Inserted, Match
from mlirt.passes.rules.patterns import Pattern
from mlirt.passes.rules.rule import Outcome, Rule
from mlirt.passes.rules.search import Captured, Search, Then

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True, eq=False)
class Equation(Rule):
    """Where `pattern` matches, what `rewrite` gives is equal to the root's result, if the rights that it needs are
    granted.

    Both stay until the cheaper one is chosen, so that neither other readers nor other equations are in the way. The
    rewrite calls `m.need(right)` where only some of what matches needs a right.
    """

    rights: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        for right in self.rights:
            _checked(right)


def equation(pattern: Pattern, *rights: str) -> Callable[[Callable[..., Outcome]], Equation]:
    """An equation from a function, `@equation(pattern, "reassociate")`; its name is that of the function."""
    return lambda rewrite: Equation(pattern, rewrite, rewrite.__name__, rights)


def _checked(right: str) -> str:
    if right not in RIGHTS:
        raise InvalidInputError(f"an equation: there is no right {right!r}; there are {', '.join(RIGHTS)}")
    return right


class EqualSearch(Search):
    """A search in an e-graph: each member of an operand's class may match, and any number of readers may be left."""

    def __init__(self, root: Operation, ctx: Context, graph: EGraph, ranges: ValueRanges) -> None:
        super().__init__(root, ctx)
        self.graph, self.ranges = graph, ranges

    def values_of(self, value: SSAValue) -> Sequence[SSAValue]:
        return self.graph.values_of(value)

    def are_equal(self, one: Captured, other: Captured) -> bool:
        if not isinstance(one, SSAValue) or not isinstance(other, SSAValue):
            return False
        return self.graph.find(one) == self.graph.find(other)

    def holds(self, op: Operation) -> bool:
        return self.graph.holds(op)

    def readers_are_inside(self, then: Then) -> bool:
        return then()


class EqualMatch(Match):
    """A match in an e-graph: new layers become nodes of it."""

    def __init__(self, search: EqualSearch) -> None:
        super().__init__(search)
        self.graph, self._ranges = search.graph, search.ranges
        self.needed: set[str] = set()

    def need(self, *rights: str) -> None:
        """The outcome is equal only if these rights are granted."""
        self.needed.update(map(_checked, rights))

    def range(self, value: SSAValue) -> Interval:
        """Which numbers a tensor may hold, by all that is known to be equal to it."""
        found = self._ranges.of(value)
        for one in self.graph.values_of(value):
            found = found & self._ranges.of(one)
        return found

    def is_same(self, one: SSAValue, other: SSAValue) -> bool:
        """Whether two values are known to be equal."""
        return self.graph.find(one) == self.graph.find(other)

    def key(self) -> tuple[object, ...]:
        """What tells this match from others of the same equation."""
        return (self.root, self.ops, self.shared, *(self._bound[name] for name in sorted(self._bound)))

    def insert(self, new: Inserted, *named_after: Operation, before: Operation | None = None) -> Inserted:
        new.location = self.location(*named_after)
        found = self.graph.add(new)
        assert isinstance(found, type(new))
        return found

    def constant(self, array: Array, role: str = "", *of: Operation) -> SSAValue:
        name = " + ".join(map(name_of, of or (self.root,)))
        made = ConstantOp.from_array(array, weights_of(self.ctx), f"{name}.{role}" if role else name)
        return self.graph.add(made).results[0]

    def drop(self, *ops: Operation) -> None:
        """Nothing is to be erased: what is not chosen goes."""


def outcome_of(rule: Equation, m: EqualMatch) -> SSAValue | str | None:
    """The value that is equal to the root's result, or why there is none."""
    try:
        found = rule.result(m, None)
    except VerifyException:
        return None  # the layer cannot be had with these operands
    if found is None or isinstance(found, str):
        return found
    value = found.results[0] if isinstance(found, Operation) else found
    if not isinstance(value, SSAValue):
        (value,) = value
    wanted = m.root.results[0].type
    return value if value.type == wanted else f"the new result would be {value.type}, not {wanted}"
