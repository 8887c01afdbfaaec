"""Sizes that follow from values of inputs, as a plan's `info.size_program` says, for who asks before a run.

A list of steps, each with a number for its result: `["number", n]`, `["length", formula]` over the symbols of the
plan and sizes before it, `["value", input, index]` of an input's elements, `[operator, a, b]` and
`["select", condition, a, b]` on the results of earlier steps; and `["size", symbol, a]`, which says what a size is.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, cast

from mlirt.errors import PlanError
from mlirt.runtime.expressions import LIMIT, ExpressionError, evaluate, parse
from mlirt.runtime.manifest import Manifest

_MAX_STEPS = 1 << 16

Step: TypeAlias = "Sequence[object]"


def _truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


_OPERATORS: Mapping[str, Callable[[int, int], int]] = {
    "sum": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "prod": lambda a, b: a * b,
    "div": _truncated,
    "floor_div": lambda a, b: a // b,
    "max": max,
    "min": min,
    "equal": lambda a, b: int(a == b),
    "less": lambda a, b: int(a < b),
    "greater": lambda a, b: int(a > b),
}


class SizeProgram:
    """The steps of a plan; raises `PlanError` where they refer to what there is not."""

    def __init__(self, manifest: Manifest) -> None:
        noted = manifest.info.get("size_program", [])
        if not isinstance(noted, list) or len(cast("list[object]", noted)) > _MAX_STEPS:
            raise PlanError("plan manifest: info.size_program: expected a list of steps")
        self._steps = [_checked(step, number) for number, step in enumerate(cast("list[object]", noted))]

    @property
    def inputs(self) -> list[str]:
        """The inputs whose values the sizes follow from."""
        return list(dict.fromkeys(str(step[1]) for step in self._steps if step[0] == "value"))

    def sizes(self, values: Mapping[str, Sequence[int]], symbols: Mapping[str, int]) -> dict[str, int]:
        """The sizes that these values of inputs and symbols determine."""
        known, results = dict(symbols), list[int | None]()
        for step in self._steps:
            result = _result(step, results, values, known)
            if step[0] == "size" and result is not None and result >= 0:
                known[str(step[1])] = result
            results.append(result if result is None or abs(result) <= LIMIT else None)
        return {name: size for name, size in known.items() if name not in symbols}


def _checked(raw: object, number: int) -> Step:
    step = cast("list[object]", raw) if isinstance(raw, list) else []
    kind = step[0] if step else None
    if kind == "number" and len(step) == 2:
        fits = _is_whole(step[1]) and abs(cast("int", step[1])) <= LIMIT
    elif kind == "length":
        fits = len(step) == 2
    elif kind == "value" and len(step) == 3:
        fits = isinstance(step[1], str) and _is_whole(step[2]) and cast("int", step[2]) >= 0
    elif kind == "size" and len(step) == 3:
        fits = isinstance(step[1], str) and _is_before(step[2], number)
    else:
        operands = {"select": 3}.get(str(kind), 2 if kind in _OPERATORS else 0)
        fits = 0 < operands == len(step) - 1 and all(_is_before(one, number) for one in step[1:])
    if not fits:
        raise PlanError(f"plan manifest: info.size_program[{number}]: {str(step)[:60]} is no step")
    return step


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_before(value: object, number: int) -> bool:
    return _is_whole(value) and 0 <= cast("int", value) < number


def _result(
    step: Step, results: Sequence[int | None], values: Mapping[str, Sequence[int]], symbols: Mapping[str, int]
) -> int | None:
    """What a step gives; None where something that it needs is not known, or has no value."""
    kind = step[0]
    if kind == "number":
        return cast("int", step[1])
    if kind == "value":
        given, place = values.get(str(step[1]), ()), cast("int", step[2])
        return given[place] if place < len(given) else None
    try:
        if kind == "length":
            return evaluate(parse(step[1], symbols), symbols)
        if kind == "size":
            return results[cast("int", step[2])]
        operands = [results[one] for one in cast("Sequence[int]", step[1:])]
        if kind == "select":
            condition, then, otherwise = operands
            return None if condition is None else then if condition else otherwise
        left, right = operands
        return None if left is None or right is None else _OPERATORS[str(kind)](left, right)
    except (ExpressionError, ZeroDivisionError):
        return None
