"""What loops and branches at run time carry from one iteration to the next and give on, as values of the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xdsl.ir import Attribute, SSAValue

from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language.operators import as_type
from mlirt.kernels.lib.language.values import is_run_time, leaves, rebuilt, type_of_number, types_of


class Carried:
    """Names with what they stand for where a loop starts: each consists of values of the run, or of numbers."""

    def __init__(self, k: KernelBuilder, starts: Mapping[str, Any]) -> None:
        self.k = k
        self.starts = {name: value for name, value in starts.items() if leaves(value)}
        self.fixed = {name: value for name, value in starts.items() if not leaves(value)}
        self.values = [value for start in self.starts.values() for value in self._started(start)]
        self.types: list[Attribute] = [value.type for value in self.values]

    def _started(self, start: Any) -> Iterator[SSAValue]:
        for leaf in leaves(start):
            yield leaf if is_run_time(leaf) else self.k.constant(leaf, type_of_number(leaf))

    def bound(self, values: Sequence[SSAValue]) -> dict[str, Any]:
        """What the names stand for where these values have taken the places of the first ones."""
        rest = iter(values)
        return {name: _rebuilt(start, rest, name) for name, start in self.starts.items()}

    def results(self, names: Mapping[str, Any]) -> list[SSAValue]:
        """What the names stand for at the end of a body, in the types with which they came in."""
        for name, value in self.fixed.items():
            if names[name] is not value and names[name] != value:
                raise TypeError(f"expected '{name}' to be known when the kernel is read: a loop at run time changes it")
        types, found = iter(self.types), list[SSAValue]()
        for name, start in self.starts.items():
            given, count = leaves(names[name]), len(leaves(start))
            if len(given) != count:
                raise TypeError(f"expected {count} values in '{name}' behind a loop as before it, not {len(given)}")
            found += [as_carried(self.k, name, leaf, next(types)) for leaf in given]
        return found


def as_carried(k: KernelBuilder, name: str, leaf: Any, type_: Attribute) -> SSAValue:
    """A part of what a name stands for as a value of a type."""
    if is_run_time(leaf) and leaf.type != type_:
        raise TypeError(f"expected '{name}' to keep its type {type_} in a loop or branch, not to become {leaf.type}")
    (value,) = as_type(type_, leaf)
    return value


class Joined:
    """Names that the two sides of a branch assign: what they stand for behind it."""

    def __init__(self, k: KernelBuilder, sides: Sequence[Mapping[str, Any]]) -> None:
        then, otherwise = sides
        self.k, self.sides, self.types = k, sides, list[Attribute]()
        self.known = {name: then[name] for name in then if name in otherwise and _is_same(then[name], otherwise[name])}
        self.names = [name for name in then if name in otherwise and name not in self.known]
        for name in self.names:
            pairs = list(zip(leaves(then[name]), leaves(otherwise[name]), strict=False))
            if not pairs or {len(leaves(side[name])) for side in sides} != {len(pairs)}:
                raise TypeError(f"expected '{name}' to consist of as many values of the run on both sides of a branch")
            self.types += [_type_of(pair) for pair in pairs]

    def ends(self, side: int) -> list[SSAValue]:
        """What one side ends with."""
        parts = [(name, leaf) for name in self.names for leaf in leaves(self.sides[side][name])]
        return [as_carried(self.k, name, leaf, type_) for (name, leaf), type_ in zip(parts, self.types, strict=True)]

    def bound(self, values: Sequence[SSAValue]) -> dict[str, Any]:
        """What the names stand for."""
        rest, then = iter(values), self.sides[0]
        return self.known | {name: _rebuilt(then[name], rest, name) for name in self.names}


def _type_of(pair: tuple[Any, Any]) -> Attribute:
    return next(iter(types_of(pair)), type_of_number(pair[0]))


def _is_same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return not types_of((a, b)) and a == b


def _rebuilt(start: Any, values: Iterator[SSAValue], name: str) -> Any:
    """What a name stands for, of the next values in place of the first ones; these are called by the name."""

    def take() -> SSAValue:
        value = next(values)
        value.name_hint = value.name_hint or name
        return value

    return rebuilt(start, take)
