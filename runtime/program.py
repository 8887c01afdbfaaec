"""What a run does in which order: launches, branches, loops, and checks of what only the run itself can tell."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mlirt.runtime.expressions import Expression, ExpressionError, evaluate, to_text


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
class Agreement:
    """The run goes on only where two lengths are equal, as a layer needs them to be, or else the left one is 1.

    The latter holds for the kind `equal_or_one` alone, which repeats the left one.
    """

    layer: str
    left: Expression
    right: Expression
    kind: str = "equal"

    def fault(self, values: Mapping[str, int]) -> str | None:
        """What is wrong with these values of the symbols, be it that a length has no value."""
        try:
            return self.difference(values)
        except ExpressionError as error:
            return f"layer {self.layer}: the lengths of its inputs have no values where they must be equal: {error}"

    def difference(self, values: Mapping[str, int]) -> str | None:
        """The lengths, where they differ."""
        left, right = evaluate(self.left, values), evaluate(self.right, values)
        if left == right or (self.kind == "equal_or_one" and left == 1):
            return None
        or_one = ", or the first 1," if self.kind == "equal_or_one" else ""
        return (
            f"layer {self.layer}: its inputs have the lengths {left} and {right} where they must be equal{or_one} "
            f"({to_text(self.left)} and {to_text(self.right)})"
        )


AGREEMENT_KINDS = ("equal", "equal_or_one")

# A number is a launch.
Step: TypeAlias = "int | Branch | Loop | SizeCheck | Requirement | Agreement"
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
    if isinstance(step, int | Agreement):
        return None
    return step.word if isinstance(step, SizeCheck) else step.condition


def never_run(program: Sequence[Step], values: Mapping[str, int]) -> tuple[set[int], bool]:
    """The launches that no run with these values of the symbols comes to, and whether it never comes to the end.

    A run stops where a formula says that a symbol has been taken for something else than it is, and where lengths
    differ that must be equal.
    """
    found: set[int] = set()
    stops = False
    for step in program:
        if stops:
            found.update(launches([step]))
        elif isinstance(step, SizeCheck):
            stops = step.word is None and evaluate(step.value, values) != values[step.symbol]
        elif isinstance(step, Agreement):
            stops = step.fault(values) is not None
        elif isinstance(step, Branch):
            sides = [never_run(part, values) for part in parts(step)]
            found.update(*(launches for launches, _ in sides))
            stops = all(ends for _, ends in sides)
        elif isinstance(step, Loop):
            first, stops = never_run(step.before, values)
            found.update(first, launches(step.body) if stops else never_run(step.body, values)[0])
    return found, stops


def decided(program: Program, values: Mapping[str, int]) -> Program:
    """The program for these values: lengths that agree need no step, those that differ end the run there."""
    found: list[Step] = []
    for step in program:
        if isinstance(step, Branch):
            found.append(Branch(step.condition, decided(step.then, values), decided(step.otherwise, values)))
        elif isinstance(step, Loop):
            found.append(Loop(step.condition, decided(step.before, values), decided(step.body, values)))
        elif not isinstance(step, Agreement):
            found.append(step)
        elif (fault := step.fault(values)) is not None:
            found.append(Requirement(None, f"{fault}; give inputs for which they are"))
    return tuple(found)
