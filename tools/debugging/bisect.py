"""rt-debug bisect: the first pass after which a network computes something else, else the first wrong kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.atomic_file import write_atomically
from mlirt.dialects.weights_file import write_weights
from mlirt.dialects.xdsl_compat import module_text
from mlirt.passes.pipeline_text import parse_pipeline
from mlirt.passes.remarks import Remarks, recording
from mlirt.tools.debugging.apart import CrashedError
from mlirt.tools.debugging.case import LAST, Case
from mlirt.tools.debugging.compare import compared_tensors, first_beyond
from mlirt.tools.debugging.crashes import crashing_launch
from mlirt.tools.debugging.differences import INFINITE, worst
from mlirt.tools.debugging.finding import ALONE, Finding
from mlirt.tools.pass_view.history import places_of
from mlirt.tools.pass_view.snapshots import Texts

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

Say = Callable[[str], None]


@dataclass(frozen=True)
class _Outcome:
    """How far off a candidate is, in which output, or how it crashed."""

    error: float
    output: str = ""
    crash: str = ""

    def __str__(self) -> str:
        return self.crash or f"{self.error:.3g} off"


def bisect(case: Case, bound: float, say: Say) -> Finding | None:
    """Find the pass, or the kernel, that makes the outputs differ from those of the network as it was read.

    The IR after some of the passes runs on the interpreter; which passes is halved until one is left. None where the
    compiled network computes what the network does.
    """
    expected = case.apart(lambda: case.interpreted(case.module))
    passes = case.phases()

    def after(count: int) -> _Outcome:
        return _outcome(case, lambda: case.interpreted(case.after(count)), expected)

    whole = after(len(passes))
    say(f"after all {len(passes)} passes up to phase {LAST}, interpreted: {whole}")
    if whole.error > bound:
        return _guilty_pass(case, bound, say, after)
    found = _outcome(case, lambda: case.compiled(case.module, case.first), expected)
    where = f" in output {found.output}" if found.error > bound and not found.crash else ""
    say(f"compiled for {case.target}: {found}{where}")
    return None if found.error <= bound else _guilty_kernel(case, bound, found)


def _outcome(case: Case, run: Callable[[], dict[str, Array]], expected: dict[str, Array]) -> _Outcome:
    try:
        output, error = worst(case.apart(run), expected)
    except CrashedError as crash:
        return _Outcome(INFINITE, crash=str(crash))
    return _Outcome(error, output)


def _guilty_pass(case: Case, bound: float, say: Say, after: Callable[[int], _Outcome]) -> Finding:
    passes = case.phases()
    right, wrong = 0, len(passes)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        found = after(middle)
        say(f"after {middle} passes: {found}")
        right, wrong = (middle, wrong) if found.error <= bound else (right, middle)
    _, spec = passes[wrong - 1]
    found = after(wrong)
    touched = () if found.crash else case.apart(lambda: _touched(case, spec, wrong))
    return Finding("pass", spec, wrong, touched, 0.0 if found.crash else found.error, found.crash)


def _touched(case: Case, spec: str, number: int) -> tuple[str, ...]:
    """The layers that the guilty run of a pass acted on: as it says itself, else those that it made or changed."""
    module, found, texts = case.after(number - 1), Remarks(), Texts()
    before = texts.of(module)
    (pass_,) = parse_pipeline(spec)
    with recording(found), found.running(pass_.name, module):
        pass_.apply(case.ctx, module)
    said = [remark.layer for remark in found.of("applied")]
    places = [] if said else places_of(before, texts.of(module))
    made = [op.title for place in places for op in (*place.inserted, *place.removed)]
    changed = [new.title for place in places for _, new in place.changed]
    return tuple(dict.fromkeys(said or made or changed))


def _guilty_kernel(case: Case, bound: float, whole: _Outcome) -> Finding:
    if whole.crash:
        return crashing_launch(case) or Finding("memory", ALONE.format("crashes"), crash=whole.crash)
    first = first_beyond(case.apart(lambda: compared_tensors(case)), bound)
    if first is None:
        return Finding("memory", ALONE.format("is off"), error=whole.error)
    return Finding("kernel", first.op, layers=(first.layer,), error=first.error)


def write_case(case: Case, finding: Finding, path: Path) -> str:
    """Write the IR before the guilty pass, with its weights; the command that runs the pass on it."""
    module = case.after(finding.number - 1)
    write_weights(module, case.ctx, path.with_suffix(".safetensors"))
    write_atomically(path, [module_text(module, debuginfo=True).encode()])
    return f"rt-opt {quote(str(path))} -p '{finding.name}'"
