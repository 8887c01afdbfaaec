"""Patterns as values: what a layer, a tensor or a constant must be for a rule to act."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeAlias

from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of, rounded, splat_of
from mlirt.dialects.tensor_types import dims, element_name, element_of, is_tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.rules.conditions import Condition, condition, spelt
from mlirt.passes.rules.search import Search, Then, named

Test: TypeAlias = "Callable[[Any], bool]"


@dataclass(frozen=True, eq=False)
class Pattern(ABC):
    """What a value must be. `name` stands for it in the rewrite; with `is_list` for all that it matched, in order."""

    name: str = ""
    is_list: bool = False
    absent: str = ""

    def missing(self, reason: str) -> Self:
        """The same; where something else stands in its place, the rule says `reason` of the root."""
        return replace(self, absent=reason)

    def named(self, name: str) -> Self:
        """The same, which the rewrite calls `name`. In two places a name stands for the same value."""
        return replace(self, name=name, is_list=False)

    def collected(self, name: str) -> Self:
        """The same in a repeated part; the rewrite gets a tuple of all that matched, in the order of the search."""
        return replace(self, name=name, is_list=True)

    def __or__(self, other: Pattern) -> OneOf:
        return OneOf(parts=(self, other))

    def may_match(self, value: SSAValue) -> bool:
        """Whether it is worth to search: False where one look at what computes `value` tells that it does not match."""
        return True

    @abstractmethod
    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        """Whether `value` matches in a way with which `then` is True."""

    def parts_inside(self) -> Iterator[Pattern]:
        """The patterns of which it is made."""
        return iter(())

    def names(self) -> set[str]:
        """All names in it."""
        inside = {name for part in self.parts_inside() for name in part.names()}
        return inside | ({self.name} if self.name else set())

    def keep(self, found: Any, search: Search, then: Then) -> bool:
        """Go on with the pattern's name for what it has found."""
        return (search.collect if self.is_list else search.bind)(self.name, found, then)


@dataclass(frozen=True, eq=False)
class Value(Pattern):
    """Any tensor, whatever computes it, whose type fulfils the conditions."""

    element: Condition | None = None
    rank: Condition | None = None
    tests: tuple[tuple[Test, str], ...] = ()

    def where(self, test: Test, reason: str) -> Self:
        """The same, of which `test(value)` must hold; else the rule declines for this reason."""
        return replace(self, tests=(*self.tests, (test, reason)))

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        def go_on() -> bool:
            return self.keep(value, search, then)

        if self.element is None and self.rank is None and not self.tests:
            return go_on()
        reason = self._unmet(value)
        return search.require(reason is None, lambda: reason or "", go_on)

    def _unmet(self, value: SSAValue) -> str | None:
        for asked, of, what in ((self.element, _element, "element type"), (self.rank, _rank, "rank")):
            if asked is not None and not asked.test(found := of(value)):
                return f"the {what} of {named(value.owner)} is {found}, not {asked.text}"
        return next((reason for test, reason in self.tests if not test(value)), None)


def _element(value: SSAValue) -> str:
    return element_name(element_of(value.type)) if is_tensor(value.type) else str(value.type)


def _rank(value: SSAValue) -> int:
    return len(dims(value.type))


def value(name: str = "", *, element: object = None, rank: object = None) -> Value:
    """Any tensor; `element` is a NumPy name such as "float32", or like `rank` a condition."""
    asked = [None if one is None else condition(one) for one in (element, rank)]
    return Value(name, element=asked[0], rank=asked[1])


def constant_among(values: Sequence[SSAValue]) -> SSAValue:
    """Of equal values one that is a constant, else the first."""
    return next((one for one in values if isinstance(one.owner, ConstantOp)), values[0])


@dataclass(frozen=True, eq=False)
class Constant(Pattern):
    """A constant, whose array (NumPy) fulfils a condition."""

    asked: Condition | None = None

    def may_match(self, value: SSAValue) -> bool:
        return type(value.owner) is ConstantOp

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        value = constant_among(search.values_of(value))
        if not isinstance(value.owner, ConstantOp):
            return search.mismatch(lambda: f"{named(value.owner)} stands where a constant is looked for")
        holds = self.asked is None or self.asked.test(array_of(value, search.ctx))
        return search.require(
            holds, lambda: f"the constant is not {self._text()}", lambda: self.keep(value, search, then)
        )

    def _text(self) -> str:
        return "" if self.asked is None else self.asked.text


def constant(name: str = "", asked: Condition | None = None) -> Constant:
    """A constant with any elements, or those whose array fulfils a condition."""
    return Constant(name, asked=asked)


@dataclass(frozen=True, eq=False)
class Number(Pattern):
    """A constant with the same number everywhere, which fulfils a condition.

    A plain number is met by what it is rounded to in the constant's own type.
    """

    asked: Condition | float | None = None

    def may_match(self, value: SSAValue) -> bool:
        return type(value.owner) is ConstantOp

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        value = constant_among(search.values_of(value))
        if not isinstance(value.owner, ConstantOp):
            return search.mismatch(lambda: f"{named(value.owner)} stands where a number is looked for")
        found = self._number(value, search)
        return search.require(
            self._holds(found, value),
            lambda: f"the constant is {'several numbers' if found is None else spelt(found)}, not {self._text()}",
            lambda: self.keep(value, search, then),
        )

    def _number(self, value: SSAValue, search: Search) -> float | None:
        found = splat_of(value)
        if found is None and all(length == 1 for length in dims(value.type)):
            array = array_of(value, search.ctx)
            return None if array is None else array.item()
        return found

    def _holds(self, found: float | None, value: SSAValue) -> bool:
        if found is None or self.asked is None:
            return found is not None
        if isinstance(self.asked, Condition):
            return self.asked.test(found)
        return rounded(self.asked, element_of(value.type)) == found

    def _text(self) -> str:
        return (
            "one number"
            if self.asked is None
            else self.asked.text
            if isinstance(self.asked, Condition)
            else spelt(self.asked)
        )


def number(asked: Condition | float | None = None, name: str = "") -> Number:
    """A constant with one number everywhere: any, this one, or one that fulfils a condition such as `near(6)`."""
    return Number(name, asked=asked)


@dataclass(frozen=True, eq=False)
class OneOf(Pattern):
    """Alternatives, tried in order: `a | b`."""

    parts: tuple[Pattern, ...] = ()

    def __or__(self, other: Pattern) -> OneOf:
        return replace(self, parts=(*self.parts, other))

    def parts_inside(self) -> Iterator[Pattern]:
        return iter(self.parts)

    def may_match(self, value: SSAValue) -> bool:
        return any(part.may_match(value) for part in self.parts)

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        return any(part.match(value, search, lambda: self.keep(value, search, then)) for part in self.parts)


@dataclass(frozen=True, eq=False)
class Repeated(Pattern):
    """`step` on `step` on .. `base`, from `least` to `most` times, as often as possible first."""

    step: Callable[[Pattern], Pattern] = lambda inner: inner
    base: Pattern = Value()
    least: int = 0
    most: int | None = None

    @cached_property
    def _further(self) -> Pattern:
        """One step, and what is left to match in front of it."""
        fewer = replace(self, name="", least=max(0, self.least - 1), most=None if self.most is None else self.most - 1)
        return self.step(fewer)

    def parts_inside(self) -> Iterator[Pattern]:
        return iter((self.step(self.base),))

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        def go_on() -> bool:
            return self.keep(value, search, then)

        if self.most != 0 and self._further.match(value, search, go_on):
            return True
        return self.least == 0 and self.base.match(value, search, go_on)


def repeated(step: Callable[[Pattern], Pattern], base: Pattern, least: int = 1, most: int | None = None) -> Repeated:
    """A chain: `repeated(lambda inner: op(IdentityOp, inner), x)` is x behind one or more conversions."""
    return Repeated(step=step, base=base, least=least, most=most)


def optional(step: Callable[[Pattern], Pattern], base: Pattern) -> Repeated:
    """A part that may be missing: `optional(lambda inner: op(ActivationOp, inner), conv)`."""
    return Repeated(step=step, base=base, least=0, most=1)


@dataclass(frozen=True, eq=False)
class Each(Pattern):
    """All operands of a variable number match one pattern."""

    pattern: Pattern = Value()

    def parts_inside(self) -> Iterator[Pattern]:
        return iter((self.pattern,))

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        return self.pattern.match(value, search, then)


def each(pattern: Pattern) -> Each:
    """For an operand of a variable number: `op(ConcatenationOp, inputs=each(value().collected("parts")))`."""
    return Each(pattern=pattern)


@dataclass(frozen=True, eq=False)
class Some(Pattern):
    """One of the operands of a variable number matches a pattern."""

    pattern: Pattern = Value()

    def parts_inside(self) -> Iterator[Pattern]:
        return iter((self.pattern,))

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        return self.pattern.match(value, search, then)


def some(pattern: Pattern) -> Some:
    """For an operand of a variable number, one of which matches: each is tried, in order.

    `op(PointwiseOp, inputs=some(op(MatmulOp).missing("it reads no product")))`.
    """
    return Some(pattern=pattern)


def match_all(pairs: Sequence[tuple[Pattern, SSAValue]], search: Search, then: Then) -> bool:
    """Whether each value matches its pattern in a way with which `then` is True."""
    if not pairs:
        return then()
    (pattern, found), *rest = pairs
    return pattern.match(found, search, lambda: match_all(rest, search, then))
