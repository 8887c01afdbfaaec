"""What a run does in which order: launches, branches, loops, and checks of what only the run itself can tell."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlirt.runtime.expressions import Expression, ExpressionError, evaluate, to_text

RELATIONS: Mapping[str, Callable[[int, int], bool]] = {
    "equal": lambda left, right: left == right,
    "equal_or_one": lambda left, right: left in (right, 1),
    "at_least": lambda left, right: left >= right,
    "multiple": lambda left, right: left % right == 0 if right else left == 0,
}


@dataclass(frozen=True)
class Place:
    """A byte or a word in memory that decides something: `offset` bytes into a buffer."""

    buffer: int
    offset: Expression


@dataclass(frozen=True)
class Branch:
    """The steps of `then` where the byte is not 0, else those of `otherwise`."""

    condition: Place
    then: "Program"
    otherwise: "Program"


@dataclass(frozen=True)
class Loop:
    """`before`, then, as long as the byte is not 0, `body` and `before` again."""

    condition: Place
    before: "Program"
    body: "Program"


@dataclass(frozen=True)
class SizeCheck:
    """The run goes on only where a symbol has been taken for what the 64-bit word, or else the formula, says."""

    symbol: str
    word: Place | None
    value: Expression


@dataclass(frozen=True)
class Requirement:
    """The run goes on only where the byte is not 0; `message` says what is wrong with the inputs where it is.

    Without a place no run goes on.
    """

    condition: Place | None
    message: str


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

    layer: str
    relation: str
    left: Expression
    right: Expression
    where: Expression
    text: str
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
