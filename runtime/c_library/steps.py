"""The program of a plan as a flat list of steps: those inside of another stand behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mlirt.runtime.formula_table import FormulaTable
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.program import Branch, LengthRequirement, Loop, Place, Requirement, SizeCheck, Step, parts

_WORD_BYTES = 8


@dataclass
class FlatStep:
    """A step of `sources/plan.h`, which says what the fields are."""

    kind: str
    a: int
    b: int = 0
    c: int = 0
    message: str = ""
    middle: int = 0
    end: int = 0


@dataclass
class FlatProgram:
    """Steps, the places in memory that they look at, and what layers need of lengths."""

    manifest: Manifest
    formulas: FormulaTable
    steps: list[FlatStep] = field(default_factory=list[FlatStep])
    places: dict[tuple[int, int, int], int] = field(default_factory=dict[tuple[int, int, int], int])
    """By buffer, the number of the offset, and bytes."""
    requirements: list[LengthRequirement] = field(default_factory=list[LengthRequirement])

    def __post_init__(self) -> None:
        self.requirements += self.manifest.requirements
        self._add(self.manifest.program)

    def _add(self, program: Sequence[Step]) -> None:
        for step in program:
            number = len(self.steps)
            self.steps.append(self._flat(step))
            inner = parts(step)
            for part in inner[:1]:
                self._add(part)
            self.steps[number].middle = len(self.steps)
            for part in inner[1:]:
                self._add(part)
            self.steps[number].end = len(self.steps)

    def _flat(self, step: Step) -> FlatStep:
        if isinstance(step, int):
            return FlatStep("LAUNCH", step)
        if isinstance(step, Branch | Loop):
            return FlatStep("BRANCH" if isinstance(step, Branch) else "LOOP", self._place(step.condition, 1))
        if isinstance(step, Requirement):
            place = -1 if step.condition is None else self._place(step.condition, 1)
            return FlatStep("REQUIREMENT", place, message=step.message)
        if isinstance(step, LengthRequirement):
            self.requirements.append(step)
            return FlatStep("LENGTHS", len(self.requirements) - 1)
        return self._size(step)

    def _size(self, step: SizeCheck) -> FlatStep:
        number = self.manifest.sizes.index(step.symbol)
        if step.word is not None:
            return FlatStep("SIZE_CHECK", number, self._place(step.word, _WORD_BYTES))
        return FlatStep("SIZE_CHECK", number, -1, self.formulas.add(step.value))

    def _place(self, place: Place, size: int) -> int:
        key = place.buffer, self.formulas.add(place.offset), size
        return self.places.setdefault(key, len(self.places))
