"""What a run does in which order: launches, branches, loops, and checks of what only the run itself can tell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from mlirt.runtime.expressions import Expression, ExpressionError, evaluate, to_text
from mlirt.runtime.record_kinds import FORMULA, MAX_ITEMS, TEXT, each, index, items, nested, one_of
from mlirt.runtime.record_schema import Fault, Given, Kind, Scope, as_table, read_record, stored

RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "equal": lambda left, right: left == right,
    "equal_or_one": lambda left, right: left in (right, 1),
    "at_least": lambda left, right: left >= right,
    "multiple": lambda left, right: left % right == 0 if right else left == 0,
}


_MAX_DEPTH = 64


def _no_relation(name: str) -> str:
    return f"{name!r} is none of {', '.join(RELATIONS)}"


def _steps(value: Any, scope: Scope, given: Given) -> "Program":
    scope.depth += 1
    if scope.depth > _MAX_DEPTH:
        raise Fault(f"is nested deeper than {_MAX_DEPTH}")
    found = tuple(each(items(value, MAX_ITEMS), lambda one: _step(one, scope)))
    scope.depth -= 1
    return found


def _step(raw: object, scope: Scope) -> "Step":
    """A launch by its index, or the record that the keys tell."""
    if isinstance(raw, int) and not isinstance(raw, bool):
        return raw
    table = as_table(raw)
    kind = next((one for key, one in STEPS.items() if table.get(key) is not None), Branch)
    return read_record(kind, table, scope)


def _size(value: Any, scope: Scope, given: Given) -> str:
    if TEXT.read(value, scope, given) not in scope.sizes:
        raise Fault(f"{value[:40]!r} is none of the plan's sizes")
    return value


def _no_value(scope: Scope, given: Given) -> int:
    """None, with a word."""
    if given["word"] is None:
        raise Fault("is missing", ".value")
    return 0


_INNER = Kind(_steps, "[step]")


@dataclass(frozen=True)
class Place:
    """A byte or a word in memory that decides something."""

    buffer: int = field(metadata=stored(index("buffers")))
    offset: Expression = field(metadata=stored(FORMULA, default=0))
    """In bytes."""


@dataclass(frozen=True)
class Branch:
    """The steps of `then` where the byte is not 0, else those of `else`."""

    condition: Place = field(metadata=stored(nested(Place), key="if"))
    then: "Program" = field(metadata=stored(_INNER, default=()))
    otherwise: "Program" = field(metadata=stored(_INNER, key="else", default=()))


@dataclass(frozen=True)
class Loop:
    """`before`, then while the byte is not 0 `body` and `before` again."""

    condition: Place = field(metadata=stored(nested(Place), key="while"))
    before: "Program" = field(metadata=stored(_INNER, default=()))
    body: "Program" = field(metadata=stored(_INNER, default=()))


@dataclass(frozen=True)
class SizeCheck:
    """The run goes on only where a symbol has been taken for what the 64-bit word, or else the formula, says.

    It is made with guesses of the sizes; where one is another value, it is made again with that.
    """

    symbol: str = field(metadata=stored(Kind(_size, "one of the plan's sizes"), key="size"))
    word: Place | None = field(metadata=stored(nested(Place), default=None))
    value: Expression = field(metadata=stored(FORMULA, default=_no_value))


@dataclass(frozen=True)
class Requirement:
    """The run goes on only where the byte is not 0; `message` says what is wrong with the inputs where it is.

    Without a place no run goes on.
    """

    condition: Place | None = field(metadata=stored(nested(Place), key="require"))
    message: str = field(metadata=stored(TEXT))


@dataclass(frozen=True)
class LengthRequirement:
    """The run goes on only where two lengths are in a relation, as a layer needs them to be, or `where` is 0.

    | relation | holds where |
    |---|---|
    | equal | left = right |
    | equal_or_one | left = right, or left = 1: it is repeated |
    | at_least | left >= right |
    | multiple | left is a whole multiple of right |
    """

    layer: str = field(metadata=stored(TEXT))
    relation: str = field(metadata=stored(one_of(*RELATIONS, fault=_no_relation)))
    left: Expression = field(metadata=stored(FORMULA))
    right: Expression = field(metadata=stored(FORMULA))
    where: Expression = field(metadata=stored(FORMULA))
    text: str = field(metadata=stored(TEXT, key="fault"))
    """What is wrong otherwise; `{left}` and `{right}` stand for the lengths."""

    def fault(self, values: Mapping[str, int]) -> str | None:
        """What is wrong with these values of the symbols, be it that a length has no value."""
        try:
            return self.violation(values)
        except ExpressionError as error:
            return f"layer {self.layer}: a length has no value: {error}"

    def violation(self, values: Mapping[str, int]) -> str | None:
        """What is wrong, where the lengths are not in the relation."""
        if not evaluate(self.where, values):
            return None
        left, right = evaluate(self.left, values), evaluate(self.right, values)
        if RELATIONS[self.relation](left, right):
            return None
        named = [to_text(length) for length in (self.left, self.right) if not isinstance(length, int)]
        formulas = f" ({' and '.join(named)})" if named else ""
        what = self.text.replace("{left}", str(left)).replace("{right}", str(right))
        return f"layer {self.layer}: {what}{formulas}"


STEPS: Mapping[str, type["Branch | Loop | SizeCheck | Requirement | LengthRequirement"]] = {
    "if": Branch,
    "while": Loop,
    "size": SizeCheck,
    "require": Requirement,
    "layer": LengthRequirement,
}
"""The steps of a program that are no launch, by the key that tells them."""


def _read_program(value: Any, scope: Scope, given: Given) -> "Program":
    found, count = _steps(value, scope, given), scope.counts["launches"]
    if list(launches(found)) != list(range(count)):
        raise Fault(f"expected each of the {count} launches once, in order")
    return found


PROGRAM = Kind(_read_program, "[step]", records=tuple(STEPS.values()))
"""Steps are launches, by index, and the records that follow here."""

AGREEMENT_KINDS = ("equal", "equal_or_one")

# A number is a launch.
Step: TypeAlias = "int | Branch | Loop | SizeCheck | Requirement | LengthRequirement"
Program: TypeAlias = "tuple[Step, ...]"


def parts(step: Step) -> tuple[Program, ...]:
    """The programs inside of a step, in the order of their launches."""
    if isinstance(step, Branch):
        return step.then, step.otherwise
    return (step.before, step.body) if isinstance(step, Loop) else ()


def launches(program: Sequence[Step]) -> Iterator[int]:
    """The launches of a program in the order of its text."""
    for step in program:
        if isinstance(step, int):
            yield step
        for part in parts(step):
            yield from launches(part)


def steps(program: Sequence[Step]) -> Iterator[Step]:
    """All steps, also those inside of others."""
    for step in program:
        yield step
        for part in parts(step):
            yield from steps(part)


def place_of(step: Step) -> Place | None:
    """The memory that a step looks at."""
    if isinstance(step, int | LengthRequirement):
        return None
    return step.word if isinstance(step, SizeCheck) else step.condition


def never_run(program: Sequence[Step], values: Mapping[str, int]) -> tuple[set[int], bool]:
    """The launches that no run with these values of the symbols comes to, and whether it never comes to the end.

    A run stops where a formula says that a symbol has been taken for something else than it is, and where lengths
    are not what a layer needs.
    """
    found: set[int] = set()
    stops = False
    for step in program:
        if stops:
            found.update(launches([step]))
        elif isinstance(step, SizeCheck):
            stops = step.word is None and evaluate(step.value, values) != values[step.symbol]
        elif isinstance(step, LengthRequirement):
            stops = step.fault(values) is not None
        elif isinstance(step, Branch):
            sides = [never_run(part, values) for part in parts(step)]
            found.update(*(launches for launches, _ in sides))
            stops = all(ends for _, ends in sides)
        elif isinstance(step, Loop):
            first, stops = never_run(step.before, values)
            found.update(first, launches(step.body) if stops else never_run(step.body, values)[0])
    return found, stops


def certain(program: Sequence[Step]) -> frozenset[int]:
    """The launches that every run comes to whose lengths fit, whatever its data are."""
    found: set[int] = set()
    for step in program:
        if isinstance(step, int):
            found.add(step)
        elif not isinstance(step, LengthRequirement) and not all(
            isinstance(one, int | Branch | Loop) for one in steps([step])
        ):
            break
    return frozenset(found)


NO_FAULTS: Mapping[int, str] = {}


def decided(program: Program, values: Mapping[str, int], faults: Mapping[int, str] = NO_FAULTS) -> Program:
    """The program for these values: lengths that fit need no step, others end the run there.

    `faults` are those of launches, by number; they too end a run that comes there.
    """
    found: list[Step] = []
    for step in program:
        if isinstance(step, Branch):
            sides = (decided(part, values, faults) for part in parts(step))
            found.append(Branch(step.condition, *sides))
        elif isinstance(step, Loop):
            found.append(Loop(step.condition, *(decided(part, values, faults) for part in parts(step))))
        elif isinstance(step, int) and step in faults:
            found.append(Requirement(None, f"the plan has no meaning for these inputs: {faults[step]}; give others"))
        elif not isinstance(step, LengthRequirement):
            found.append(step)
        elif (fault := step.fault(values)) is not None:
            found.append(Requirement(None, f"{fault}; give inputs that fit"))
    return tuple(found)
