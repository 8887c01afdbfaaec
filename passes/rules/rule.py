"""A rule, or rewrite pattern: a pattern of ops, and what takes the place of those that match it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.tensor_op import TensorOp
from mlirt.errors import InvalidInputError
from mlirt.passes.rules.layers import Layer
from mlirt.passes.rules.match import Match
from mlirt.passes.rules.patterns import OneOf, Pattern

Outcome: TypeAlias = "SSAValue | Operation | Sequence[SSAValue] | str | None"
"""New values for the root's results; a reason for which the rule declines; None where it does without saying why."""

Property: TypeAlias = "str | float | Sequence[object] | Attribute | Callable[[Match], object] | None"
_GIVEN = ("self", "m", "ctx")


@dataclass(frozen=True, eq=False)
class NewLayer:
    """A layer as an expression over the names of a pattern; made by `layer(...)`."""

    kind: type[TensorOp]
    operands: tuple[Pattern | NewLayer | None, ...]
    like: str
    properties: dict[str, Property]

    def build(self, m: Match) -> Operation:
        """Put the layer, and those that it reads, in front of the root."""
        given = [_value(one, m) for one in self.operands]
        own: dict[str, object] = dict(m.captured(self.like).properties) if self.like else {}
        wanted = {name: one(m) if callable(one) else one for name, one in self.properties.items()}
        return m.make(self.kind, *given, **{**own, **wanted})

    def names(self) -> set[str]:
        """The names that it uses."""
        used = {name for one in self.operands if one is not None for name in one.names()}
        return used | ({self.like} if self.like else set())


def layer(
    kind: type[TensorOp], /, *operands: Pattern | NewLayer | None, like: str = "", **properties: Property
) -> NewLayer:
    """A layer as an expression: `layer(ActivationOp, x, kind="clip", alpha=0.0, beta=lambda m: m.number("c"))`.

    Operands are named parts of the pattern, or further layers. Properties are those of the op named `like`, changed by
    plain values or functions of the match.
    """
    return NewLayer(kind, operands, like, properties)


def _value(one: Pattern | NewLayer | None, m: Match) -> Any:
    if isinstance(one, NewLayer):
        return one.build(m).results[0]
    return None if one is None else m[one.name]


@dataclass(frozen=True, eq=False)
class Rule:
    """Where `pattern` matches, what `rewrite` gives takes the place of its root.

    `rewrite` is a named part of the pattern, a `layer(..)`, or a function. A function is called with what its
    parameters name: parts of the pattern, `m` (the `Match`), `ctx`, and `self`, the pass. It gives an op, a value,
    several values, or says as a text why it declines. Raises `InvalidInputError` where it asks for a name that is not
    there.
    """

    pattern: Pattern
    rewrite: Callable[..., Outcome] | Pattern | NewLayer
    name: str = ""
    roots: tuple[Layer, ...] = field(init=False)
    _parameters: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = self.pattern.parts if isinstance(self.pattern, OneOf) else (self.pattern,)
        roots = tuple(part if part.name else part.named(self.pattern.name) for part in parts if isinstance(part, Layer))
        if len(roots) < len(parts):
            raise InvalidInputError(f"{self._head()}: its root must be an op, or alternatives that are ops")
        object.__setattr__(self, "roots", roots)
        object.__setattr__(self, "_parameters", self._asked_for())

    def _asked_for(self) -> tuple[str, ...]:
        if isinstance(self.rewrite, Pattern | NewLayer):
            asked = tuple(self.rewrite.names())
        else:
            asked = tuple(inspect.signature(self.rewrite).parameters)
        known = self.pattern.names()
        for name in asked:
            if name not in known and name not in _GIVEN:
                names = ", ".join(sorted(known)) or "none"
                raise InvalidInputError(f"{self._head()}: its rewrite asks for {name!r}; the pattern has {names}")
        return asked

    def _head(self) -> str:
        return f"rule {self.name}" if self.name else "a rule"

    def called(self) -> str:
        """What errors call it: its name, else its pattern."""
        return self.name or f"of {' or '.join(root.described() for root in self.roots)}"

    def result(self, m: Match, pass_: ModulePass | None) -> Outcome:
        """What takes the root's place, or why nothing does."""
        if isinstance(self.rewrite, NewLayer):
            return self.rewrite.build(m)
        if isinstance(self.rewrite, Pattern):
            return m[self.rewrite.name]
        return self.rewrite(*[self._argument(name, m, pass_) for name in self._parameters])

    def _argument(self, name: str, m: Match, pass_: ModulePass | None) -> Any:
        if name in _GIVEN:
            return pass_ if name == "self" else m if name == "m" else m.ctx
        return m.captured(name)


def rule(pattern: Pattern) -> Callable[[Callable[..., Outcome]], Rule]:
    """A rule from a function, `@rule(pattern)`; its name is that of the function."""
    return lambda rewrite: Rule(pattern, rewrite, rewrite.__name__)
