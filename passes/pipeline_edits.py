"""The compiler's own pipeline, and changes to it: passes put after or before others, in their place, or left out."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias, get_args

from mlirt.errors import InvalidInputError
from mlirt.passes.phases import PHASES, TARGETS, Phase, TargetMachine, phase_names, pipeline_for, specs_of
from mlirt.passes.pipeline_text import parse_pipeline, pipeline_text

Kind = Literal["after", "before", "replace", "without"]
KINDS: tuple[Kind, ...] = get_args(Kind)
Phases: TypeAlias = "Sequence[tuple[Phase, tuple[str, ...]]]"

_PLACE = re.compile(r"((?P<phase>[a-z]+)/)?(?P<name>[\w-]+)(#(?P<number>[1-9]\d*))?")
_EXPECTED = "expected after=PLACE:PASSES, before=PLACE:PASSES, replace=PLACE:PASSES or without=PLACE"


@dataclass(frozen=True)
class Edit:
    """One change. `place` is a pass, `PHASE/PASS`, `PASS#2` for its second run, or a phase."""

    kind: Kind
    place: str
    passes: str = ""

    @classmethod
    def parse(cls, text: str) -> Edit:
        """An edit as the flag --pipeline-edit has it: `after=PLACE:PASSES`."""
        word, equals, rest = text.partition("=")
        kinds: list[Kind] = [kind for kind in KINDS if kind == word.strip()]
        if not equals or not kinds:
            near = _near(word.strip(), KINDS) if equals else []
            hint = f"; did you mean {near[0]}?" if near else ""
            raise InvalidInputError(f"the pipeline edit {text!r} cannot be read: {_EXPECTED}{hint}")
        place, colon, passes = rest.partition(":")
        if (kinds[0] == "without") == bool(colon):
            raise InvalidInputError(f"the pipeline edit {text!r} cannot be read: {_EXPECTED}")
        return cls(kinds[0], place.strip(), passes.strip())

    def __str__(self) -> str:
        return f"{self.kind}={self.place}" + (f":{self.passes}" if self.passes else "")

    def specs(self) -> tuple[str, ...]:
        """The passes that it puts there, each checked with its options."""
        if self.kind == "without":
            return ()
        passes = parse_pipeline(self.passes)
        if not passes:
            raise InvalidInputError(f"the pipeline edit {self} names no pass: {_EXPECTED}")
        return tuple(pipeline_text([one]) for one in passes)

    def applied(self, phases: Phases, target: str) -> Phases:
        """The phases with this change; raises `InvalidInputError` where its place is none, or several."""
        match = _PLACE.fullmatch(self.place)
        if match is None:
            raise InvalidInputError(
                f"the pipeline edit {self}: {self.place!r} is no place: expected PASS, PASS#1 for its first run, "
                "PHASE/PASS or PHASE"
            )
        specs = self.specs()
        if match["phase"] is None and match["number"] is None and match["name"] in phase_names():
            return self._at_phase(phases, match["name"], specs)
        found = self._places(phases, match, target)
        result = [list(of) for _, of in phases]
        for phase, index in reversed(found):
            first = index + (self.kind == "after")
            last = first + (self.kind in ("replace", "without"))
            result[phase][first:last] = specs
        return [(phase, tuple(of)) for (phase, _), of in zip(phases, result, strict=True)]

    def _at_phase(self, phases: Phases, name: str, specs: tuple[str, ...]) -> Phases:
        """Passes at the start of a phase, or at its end but in front of the check of its border."""
        if self.kind not in ("after", "before"):
            raise InvalidInputError(f"the pipeline edit {self}: only passes can be, and {name} is a phase")

        def changed(of: tuple[str, ...]) -> tuple[str, ...]:
            return (*specs, *of) if self.kind == "before" else (*of[:-1], *specs, of[-1])

        return [(phase, changed(of) if phase.name == name else of) for phase, of in phases]

    def _places(self, phases: Phases, match: re.Match[str], target: str) -> list[tuple[int, int]]:
        found = [
            (number, index)
            for number, (phase, of) in enumerate(phases)
            for index, spec in enumerate(of[:-1])  # the last one checks the border of the phase
            if spec.partition("{")[0] == match["name"] and match["phase"] in (None, phase.name)
        ]
        if not found:
            raise InvalidInputError(f"the pipeline edit {self}: {_missing(phases, match, target)}")
        if match["number"] is not None:
            if int(match["number"]) > len(found):
                raise InvalidInputError(
                    f"the pipeline edit {self}: the pipeline for {target} runs {match['name']} {len(found)} times"
                )
            return [found[int(match["number"]) - 1]]
        if len(found) > 1 and self.kind in ("after", "before"):
            where = ", ".join(f"{phases[phase][0].name}" for phase, _ in found)
            raise InvalidInputError(
                f"the pipeline edit {self}: {match['name']} runs {len(found)} times (in {where}); say which, such as "
                f"{match['name']}#1"
            )
        return found


def _missing(phases: Phases, match: re.Match[str], target: str) -> str:
    """Why there is no such place, with what was meant if it can be told."""
    name, phase = match["name"], match["phase"]
    if phase is not None and phase not in phase_names():
        return f"there is no phase {phase!r}: expected one of {', '.join(phase_names())}"
    if any(spec.partition("{")[0] == name for _, of in phases for spec in of[-1:]):
        return f"{name} checks the border of each phase, which no edit changes"
    running = {spec.partition("{")[0]: of_phase.name for of_phase, of in phases for spec in of[:-1]}
    if name in running:
        return f"{name} does not run in phase {phase}, but in phase {running[name]}"
    steps = [step for of_phase in PHASES for step in of_phase.steps if step.pass_name == name]
    if steps:
        on = {f"{step.target or '/'.join(TARGETS)} {step.precision or ''}".strip() for step in steps}
        only = " and ".join(sorted(on))
        return f"{name} does not run in the pipeline for {target}, but on {only}"
    near = _near(name, [*running, *phase_names()])
    hint = f"; did you mean {near[0]}?" if near else "; see rt-opt --dump-pass-pipeline"
    return f"no pass {name!r} is in the pipeline for {target}{hint}"


@dataclass(frozen=True)
class Pipeline:
    """The compiler's pipeline with changes, in the order in which they were made.

    `Pipeline.default().after("fuse-pointwise", "my-pass{x=1}").without("sink-views")`
    """

    edits: tuple[Edit, ...] = ()

    @classmethod
    def default(cls) -> Pipeline:
        """The compiler's own."""
        return cls()

    @classmethod
    def parse(cls, edits: Sequence[str]) -> Pipeline:
        """The pipeline of the flags --pipeline-edit."""
        return cls(tuple(map(Edit.parse, edits)))

    def after(self, place: str, passes: str) -> Pipeline:
        """Run passes behind one of the pipeline, or at the end of a phase."""
        return self._with("after", place, passes)

    def before(self, place: str, passes: str) -> Pipeline:
        """Run passes in front of one of the pipeline, or at the start of a phase."""
        return self._with("before", place, passes)

    def replace(self, place: str, passes: str) -> Pipeline:
        """Run passes in place of one of the pipeline, each time that it runs."""
        return self._with("replace", place, passes)

    def without(self, place: str) -> Pipeline:
        """Leave a pass of the pipeline out, each time that it runs."""
        return self._with("without", place, "")

    def _with(self, kind: Kind, place: str, passes: str) -> Pipeline:
        for what, text in (("place", place), ("passes", passes)):
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]  (users are not checked)
                raise InvalidInputError(f"{kind}: expected the {what} as a text such as 'cse,dce', got {text!r}")
        return replace(self, edits=(*self.edits, Edit(kind, place, passes)))

    def phases(
        self,
        target: str,
        precision: str = "fp32",
        machine: TargetMachine = TargetMachine(),
    ) -> Phases:
        """All phases, each with the text of its passes."""
        phases: Phases = [(phase, specs_of(phase, target, precision, machine)) for phase in PHASES]
        for edit in self.edits:
            phases = edit.applied(phases, target)
        return phases

    def between(
        self,
        first: str | None,
        last: str | None,
        target: str,
        precision: str = "fp32",
        machine: TargetMachine = TargetMachine(),
    ) -> Phases:
        """The phases from `first` to `last`, both included."""
        wanted = [phase.name for phase, _ in pipeline_for(target, precision, first, last, machine)]
        return [one for one in self.phases(target, precision, machine) if one[0].name in wanted]

    def check(self, target: str, precision: str = "fp32", first: str | None = None, last: str | None = None) -> None:
        """Raise `InvalidInputError` for a change that cannot be made, or to a phase that does not run."""
        plain = Pipeline().phases(target, precision)
        running = {phase.name for phase, _ in pipeline_for(target, precision, first, last)}
        for edit in self.edits:
            changed = edit.applied(plain, target)
            touched = [phase.name for (phase, now), (_, was) in zip(changed, plain, strict=True) if now != was]
            idle = [name for name in touched if name not in running]
            if idle and idle == touched:
                raise InvalidInputError(f"the pipeline edit {edit}: phase {idle[0]} does not run here")
            plain = changed

    def text(self, target: str = "cpu", precision: str = "fp32", machine: TargetMachine = TargetMachine()) -> str:
        """One line a phase: its name and its passes."""
        lines = [f"{phase.name}: {','.join(specs)}" for phase, specs in self.phases(target, precision, machine)]
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.text()


def _near(word: str, known: Sequence[str]) -> list[str]:
    """The one of the known words that was meant, if it can be told."""
    from difflib import get_close_matches  # for mistakes alone: tools start without it

    return get_close_matches(word, known, 1)
