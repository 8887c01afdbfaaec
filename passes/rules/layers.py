"""The pattern of an op: its class, its operands, its properties, and who may read what it computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache
from types import EllipsisType, UnionType
from typing import Any, Self, TypeAlias, get_args

from xdsl.ir import Operation, SSAValue
from xdsl.irdl import IRDLOperation, OptOperandDef, VarOperandDef
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.locations import name_of
from mlirt.dialects.property_values import properties_of
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.errors import InvalidInputError
from mlirt.passes.rules.conditions import Condition, condition, plain, spelt
from mlirt.passes.rules.patterns import Each, Pattern, Some, match_all
from mlirt.passes.rules.search import Search, Then, named

Kinds: TypeAlias = "type[Operation] | UnionType | tuple[type[Operation], ...]"
Operand: TypeAlias = "Pattern | Sequence[Pattern] | None"
Obstacle: TypeAlias = "Callable[[Any], str | None]"


@dataclass(frozen=True, eq=False)
class Layer(Pattern):
    """An op of one of `kinds`; made by `op(...)`.

    `operands` stand for all operands in order, or with `is_open` for the first ones. `by_name` are operands by the
    names that the op's definition gives them: a pattern, a list of patterns, `each(..)`, `some(..)`, or None for one
    that is absent. `result` says which result of the op the value is. Unless it is shared, nothing but the matched ops
    may read an op in front of the root.
    """

    kinds: tuple[type[Operation], ...] = ()
    operands: tuple[Pattern, ...] = ()
    is_open: bool = True
    by_name: tuple[tuple[str, Operand], ...] = ()
    properties: tuple[tuple[str, Condition], ...] = ()
    obstacles: tuple[Obstacle, ...] = ()
    commutes: bool = False
    is_shared: bool = False
    result: int = 0

    def commuting(self) -> Self:
        """The same, whose two operands may stand in either order."""
        return replace(self, commutes=True)

    def shared(self) -> Self:
        """The same, which other layers may read too: it stays, and the new layer does not bear its name."""
        return replace(self, is_shared=True)

    def result_number(self, index: int) -> Self:
        """The same, of whose results the value is another than the first."""
        return replace(self, result=index)

    def where(self, test: Callable[[Any], bool], reason: str) -> Self:
        """The same, of which `test(op)` must hold; else the rule declines for this reason."""
        return self.unless(lambda found: None if test(found) else reason)

    def unless(self, obstacle: Obstacle) -> Self:
        """The same, where `obstacle(op)` is None; what it says otherwise is the reason for which the rule declines."""
        return replace(self, obstacles=(*self.obstacles, obstacle))

    def parts_inside(self) -> Iterator[Pattern]:
        yield from self.operands
        for _, wanted in self.by_name:
            yield from [wanted] if isinstance(wanted, Pattern) else wanted or ()

    def may_match(self, value: SSAValue) -> bool:
        kind = type(value.owner)
        return kind in self.kinds or _is_one_of(kind, self.kinds)

    def may_be(self, found: Operation) -> bool:
        """Whether it is worth to search at an op: its properties are those, and what is next to it may match."""
        for name, asked in self.properties:
            if not asked.test(_property(found, name)):
                return False
        for name, wanted in self.by_name:
            if isinstance(wanted, Some) and not _may_match_some(wanted, found, name):
                return False
        if not self.operands:
            return True
        for pairs in self._orders(found):
            for pattern, value in pairs:
                if not pattern.may_match(value):
                    break
            else:
                return True
        return False

    def match(self, value: SSAValue, search: Search, then: Then) -> bool:
        for one in search.values_of(value):
            if self._match_value(one, search, then):
                return True
        return False

    def _match_value(self, value: SSAValue, search: Search, then: Then) -> bool:
        owner = value.owner
        if (
            not isinstance(owner, Operation)
            or not self.may_match(value)
            or value not in owner.results[self.result : self.result + 1]
        ):
            search.misses(self.absent)
            return search.mismatch(lambda: f"{named(owner)} stands where {self.described()} is looked for")
        if search.holds(owner):
            return self.match_op(owner, search, then)
        return search.require(
            False, lambda: f"{name_of(owner)} is in another block", lambda: self.match_op(owner, search, then)
        )

    def match_op(self, found: Operation, search: Search, then: Then) -> bool:
        """Whether an op matches in a way with which `then` is True."""
        for name, asked in self.properties:
            if not asked.test(own := _property(found, name)):
                return search.mismatch(lambda: f"{name} of {named(found)} is {spelt(own)}, not {asked.text}")
        if self.operands and not self._fits(found):
            return search.mismatch(lambda: f"{named(found)} has {len(found.operands)} operands")

        def go_on() -> bool:
            return self.keep(found, search, lambda: search.visit(found, self.is_shared, then))

        if not self.operands and not self.by_name:
            return self._match_obstacles(found, search, go_on)
        search.depth += 1
        is_match = any(
            match_all(pairs, search, lambda: self._match_rest(found, search, go_on)) for pairs in self._orders(found)
        )
        search.depth -= 1
        return is_match

    def described(self) -> str:
        """The op in a reason."""
        return " or ".join(kind.name for kind in self.kinds) + "".join(f" {one.text}" for _, one in self.properties[:1])

    def _fits(self, found: Operation) -> bool:
        count = len(found.operands)
        return count >= len(self.operands) if self.is_open else count == len(self.operands)

    def _orders(self, found: Operation) -> list[list[tuple[Pattern, SSAValue]]]:
        given = list(found.operands)
        pairs = list(zip(self.operands, given, strict=False))
        if self.commutes and len(given) == len(self.operands) == 2:
            return [pairs, [(self.operands[0], given[1]), (self.operands[1], given[0])]]
        return [pairs]

    def _match_rest(self, found: Operation, search: Search, then: Then) -> bool:
        return self._match_named(self.by_name, found, search, lambda: self._match_obstacles(found, search, then))

    def _match_named(
        self, by_name: Sequence[tuple[str, Operand]], found: Operation, search: Search, then: Then
    ) -> bool:
        """Whether the operands by these names match in a way with which `then` is True."""
        if not by_name:
            return then()
        (name, wanted), *rest = by_name
        values = _operands(found, name)

        def go_on() -> bool:
            return self._match_named(rest, found, search, then)

        if isinstance(wanted, Some):
            given = [value for value in dict.fromkeys(values) if wanted.pattern.may_match(value)]
            if not given:
                return search.misses(wanted.pattern.absent)
            return any(wanted.match(value, search, go_on) for value in given)
        patterns = [wanted] * len(values) if isinstance(wanted, Each) else _listed(wanted)
        if len(patterns) != len(values):
            return search.mismatch(lambda: f"{named(found)} has other operands")
        return match_all(list(zip(patterns, values, strict=True)), search, go_on)

    def _match_obstacles(self, found: Operation, search: Search, then: Then) -> bool:
        for obstacle in self.obstacles:
            reason = obstacle(found)
            if reason is not None:
                return search.require(False, lambda: reason, then)
        return then()


def _operands(found: Operation, name: str) -> list[SSAValue]:
    """The operands of an op by a name: none, one or several."""
    given: Any = getattr(found, name)
    return [] if given is None else [given] if isinstance(given, SSAValue) else list(given)


def _may_match_some(wanted: Some, found: Operation, name: str) -> bool:
    return any(wanted.pattern.may_match(value) for value in _operands(found, name))


@cache
def _is_one_of(kind: type, kinds: tuple[type[Operation], ...]) -> bool:
    """Asked for each pair of classes once: ops have abstract bases, at which `isinstance` is slow."""
    return issubclass(kind, kinds)


def _property(found: Operation, name: str) -> object:
    given = found.properties.get(name)
    return plain(getattr(found, name) if given is None else given)


def _listed(wanted: Operand) -> list[Pattern]:
    return [] if wanted is None else [wanted] if isinstance(wanted, Pattern) else list(wanted)


def op(kinds: Kinds, *operands: Pattern | EllipsisType, **named_parts: Any) -> Layer:
    """The pattern of an op: `op(ConvolutionOp, op(PaddingOp, x), ..., num_groups=1)`.

    Operands come in order, all of them unless `...` ends them; or as keywords, by their names. Other keywords are
    properties, as plain values or conditions: `kind="relu"`, `alpha=near(6)`, `bias=None`.
    Raises `InvalidInputError` for names and words that the op does not have.
    """
    given_kinds = get_args(kinds) if isinstance(kinds, UnionType) else kinds
    classes: tuple[Any, ...] = given_kinds if isinstance(given_kinds, tuple) else (given_kinds,)
    is_open = not operands or operands[-1] is ...
    given = tuple(one for one in operands if isinstance(one, Pattern))
    if any(isinstance(one, Each | Some) for one in given):
        raise InvalidInputError(
            "a pattern: each(..) stands for an operand by its name, as in inputs=each(value()), and so does some(..)"
        )
    for kind in classes:
        most = _most_operands(kind)
        if most is not None and len(given) > most:
            raise InvalidInputError(f"a pattern of {kind.name}: it has {len(given)} operands, but the op {most}")
    by_name, properties = _sorted(classes, named_parts)
    return Layer(kinds=classes, operands=given, is_open=is_open, by_name=by_name, properties=properties)


def _sorted(
    classes: Sequence[type[IRDLOperation]], given: Mapping[str, Any]
) -> tuple[tuple[tuple[str, Operand], ...], tuple[tuple[str, Condition], ...]]:
    operands: list[tuple[str, Operand]] = []
    properties: list[tuple[str, Condition]] = []
    for name, wanted in given.items():
        if all(name in _names(kind)[0] for kind in classes):
            operands.append((name, wanted))
        else:
            for kind in classes:
                _check(kind, name, wanted)
            properties.append((name, condition(wanted)))
    return tuple(operands), tuple(properties)


@cache
def _most_operands(kind: type[Operation]) -> int | None:
    """How many operands an op can have; None where there is no end to it."""
    if not issubclass(kind, IRDLOperation) or not hasattr(kind, "get_irdl_definition"):
        return None
    operands = [one for _, one in kind.get_irdl_definition().operands]
    several = any(isinstance(one, VarOperandDef) and not isinstance(one, OptOperandDef) for one in operands)
    return None if several else len(operands)


@cache
def _names(kind: type[IRDLOperation]) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the operands and of the properties of an op."""
    definition = kind.get_irdl_definition()
    return frozenset(name for name, _ in definition.operands), frozenset(definition.properties)


def _check(kind: type[IRDLOperation], name: str, wanted: Any) -> None:
    operands, properties = _names(kind)
    if name not in properties:
        near = get_close_matches(name, operands | properties, 1)
        hint = f"did you mean {near[0]}?" if near else f"it has {', '.join(sorted(operands | properties))}"
        raise InvalidInputError(f"a pattern of {kind.name}: it has no operand or property {name!r}; {hint}")
    if isinstance(wanted, str):
        try:
            properties_of(kind, {name: wanted})
        except (ValueError, VerifyException) as error:
            raise InvalidInputError(f"a pattern of {kind.name}: {name} is {wanted!r}: {error}") from error


_COMMUTE = frozenset({"sum", "prod", "max", "min", "and", "or", "xor", "equal", "bit_and", "bit_or", "bit_xor"})


def binary(kind: str, lhs: Pattern, rhs: Pattern, **named_parts: Any) -> Layer:
    """`trt.elementwise` of a kind, whose operands stand in either order where the kind commutes."""
    found = op(ElementwiseOp, lhs, rhs, kind=kind, **named_parts)
    return found.commuting() if ElementwiseKind(kind) in _COMMUTE else found
