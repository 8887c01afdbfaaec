"""rt-debug bisect: the first pass after which a network computes something else, else the first wrong kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from mlirt.atomic_file import write_atomically
from mlirt.dialects.weights_file import write_weights
from mlirt.dialects.xdsl_compat import module_text
from mlirt.passes.pipeline_text import parse_pipeline
from mlirt.passes.remarks import Remarks, recording
from mlirt.tools.debugging.case import LAST, Case
from mlirt.tools.debugging.compare import compared_tensors, first_beyond
from mlirt.tools.debugging.differences import worst
from mlirt.tools.pass_view.history import places_of
from mlirt.tools.pass_view.snapshots import Texts

Say = Callable[[str], None]


@dataclass(frozen=True)
class Finding:
    """What is at fault: a pass by its number in the pipeline, or the kernel of a layer."""

    kind: str
    name: str
    number: int = 0
    layers: tuple[str, ...] = ()
    error: float = 0.0


def bisect(case: Case, bound: float, say: Say) -> Finding | None:
    """Find the pass, or the kernel, that makes the outputs differ from those of the network as it was read.

    The IR after some of the passes runs on the interpreter; which passes is halved until one is left. None where the
    compiled network computes what the network does.
    """
    expected = case.interpreted(case.module)
    passes = case.phases()

    def error_after(count: int) -> float:
        return worst(case.interpreted(case.after(count)), expected)[1]

    whole = error_after(len(passes))
    say(f"after all {len(passes)} passes up to phase {LAST}, interpreted: {whole:.3g} off")
    if whole > bound:
        return _guilty_pass(case, bound, say, error_after)
    name, error = worst(case.compiled(case.module, case.first), expected)
    say(f"compiled for {case.target}: {error:.3g} off" + (f" in output {name}" if error > bound else ""))
    return None if error <= bound else _guilty_kernel(case, bound, error)


def _guilty_pass(case: Case, bound: float, say: Say, error_after: Callable[[int], float]) -> Finding:
    passes = case.phases()
    right, wrong = 0, len(passes)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        error = error_after(middle)
        say(f"after {middle} passes: {error:.3g} off")
        right, wrong = (middle, wrong) if error <= bound else (right, middle)
    _, spec = passes[wrong - 1]
    return Finding("pass", spec, wrong, _touched(case, spec, wrong), error_after(wrong))


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


def _guilty_kernel(case: Case, bound: float, error: float) -> Finding:
    first = first_beyond(compared_tensors(case), bound)
    if first is None:
        return Finding("memory", "no single launch is off: launches that share memory, or their order", error=error)
    return Finding("kernel", first.op, layers=(first.layer,), error=first.error)


def write_case(case: Case, finding: Finding, path: Path) -> str:
    """Write the IR before the guilty pass, with its weights; the command that runs the pass on it."""
    module = case.after(finding.number - 1)
    write_weights(module, case.ctx, path.with_suffix(".safetensors"))
    write_atomically(path, [module_text(module, debuginfo=True).encode()])
    return f"rt-opt {path} -p '{finding.name}'"
