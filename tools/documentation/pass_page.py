"""The page of the passes: the phases with a reason for each pass's place, then every pass with its before and after."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from pathlib import Path

from mlirt.passes import registry
from mlirt.passes.options import OptionInfo, option_infos
from mlirt.passes.phases import PHASES, Phase, Step

_INTRODUCTION = """\
<!-- Generated from passes/phases.py and the passes by `make docs`; edit those. -->

# The passes

`rt-opt --to PHASE` runs the compiler up to the end of a phase, `rt-opt -p 'a,b{option=value}'` any passes in any order,
`rt-opt --help-pass PASS` prints what is below. How to write one: [write a fusion pass](write-a-fusion-pass.md).

After each phase only the dialects and ops that the phase names may be left; `verify-legality` checks that."""


def pass_page() -> str:
    """The Markdown page; links are relative to docs/."""
    lines = [_INTRODUCTION, ""]
    for phase in PHASES:
        lines += [*_phase(phase), ""]
    for package in registry.packages():
        paths = [path for path in registry.pass_paths() if path.parent == package]
        if paths:
            lines += [f"## Passes of {package.name.replace('_', ' ')}", ""]
        for path in paths:
            lines += [*_pass(path), ""]
    return "\n".join(lines).rstrip() + "\n"


def _phase(phase: Phase) -> Iterator[str]:
    yield f"## Phase {phase.name}: {phase.purpose}"
    yield ""
    if phase.steps:
        yield "| pass | why here | only on |"
        yield "|---|---|---|"
        yield from (_step(step) for step in phase.steps if registry.exists(step.pass_name))
        yield ""
    yield f"Left after it: {', '.join(f'`{name}`' for name in sorted(phase.legal))}."


def _step(step: Step) -> str:
    own = registry.path_of(step.pass_name) is not None
    name = f"[`{step.pass_name}`](#{step.pass_name})" if own else f"`{step.pass_name}` (xDSL's)"
    without = f"without {step.without}" if step.without else None
    only = ", ".join(word for word in (step.target, step.precision, without) if word)
    return f"| {name} | {step.reason} | {only} |"


def _described(info: OptionInfo) -> str:
    default = f"default {info.default}" if info.default is not None else "must be given"
    return ", ".join(part for part in (info.type, info.values, default) if part)


def _pass(path: Path) -> Iterator[str]:
    name = registry.name_of(path)
    package = path.parent.name
    yield f"### {name}"
    yield ""
    yield textwrap.dedent(registry.description(path)).strip()
    yield ""
    options = [f"`{info.name}` ({_described(info)})" for info in option_infos(registry.load(name))]
    if options:
        yield f"Options: {', '.join(options)}."
        yield ""
    tests = f"test/passes/{package}"
    file = f"passes/{package}/{path.name}"
    yield f"Defined in [{file}](../{file}), tested in [{tests}](../{tests})."
