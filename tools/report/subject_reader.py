"""Makes what a page is about out of files: a plan is read, a model or IR is built while the report watches."""

from __future__ import annotations

import sys
from argparse import Namespace
from dataclasses import replace
from pathlib import Path

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.plan_file import Plan, read_plan
from mlirt.tools.report.kernel_sources import kernel_sources
from mlirt.tools.report.kernel_texts import KernelText
from mlirt.tools.report.launch_times import read_times
from mlirt.tools.report.machine_code import machine_code
from mlirt.tools.report.measured_times import measured_times
from mlirt.tools.report.subject import BuildFacts, Subject
from mlirt.tools.report.text_files import read_text
from mlirt.tools.report.usual_shapes import usual_binding

_MODELS = (".onnx", ".mlir")
_USUAL_RUNS = 10


def subjects_of(arguments: Namespace) -> list[Subject]:
    """The engine of the page, and the one to compare it with if there is one, their launches timed as the flags say.

    A model that is built here is run, unless --runs says otherwise or a file has its times; a plan only on demand.
    """
    files = [(arguments.plan, arguments.profile)]
    if arguments.compare:
        files.append((arguments.compare, arguments.compare_profile))
    subjects: list[Subject] = []
    engines: dict[int, Engine] = {}
    for number, (path, profile) in enumerate(files):
        subject, engine = _subject(path, arguments)
        if profile:
            subject = replace(subject, times=read_times(Path(profile), len(subject.plan.manifest.launches)))
        elif engine is not None:
            engines[number] = engine
        subjects.append(subject)
    return _timed(subjects, engines, arguments.runs)


def _subject(path: str, arguments: Namespace) -> tuple[Subject, Engine | None]:
    """The subject without times, and the engine where it may be run."""
    label = Path(path).name
    if not path.endswith(_MODELS):
        plan = read_plan(path)
        binding = usual_binding(plan.manifest, arguments.shapes)
        code = machine_code(plan, arguments.machine_code)
        subject = Subject(label, plan, binding, None, _kernels(plan, arguments), None, code)
        return subject, load(path) if arguments.runs else None
    engine, kernels, build = _built(path, arguments)
    binding = usual_binding(engine.plan.manifest, arguments.shapes)
    kernels |= _kernels(engine.plan, arguments)
    code = machine_code(engine.plan, arguments.machine_code)
    return Subject(label, engine.plan, binding, None, kernels, build, code), engine


def _timed(subjects: list[Subject], engines: dict[int, Engine], asked: int | None) -> list[Subject]:
    """The subjects with times of those that have an engine; one that does not run on random numbers has none unless
    its runs were asked for.
    """
    runs = _USUAL_RUNS if asked is None else asked
    if not engines or not runs:
        return subjects
    try:
        measured = measured_times([(engine, subjects[number].binding) for number, engine in engines.items()], runs)
    except MlirtError as error:
        if asked:
            raise
        print(f"rt-report: no times: {' '.join(str(error).split())}", file=sys.stderr)
        return subjects
    times = dict(zip(engines, measured, strict=True))
    return [replace(one, times=times.get(number, one.times)) for number, one in enumerate(subjects)]


def _built(path: str, arguments: Namespace) -> tuple[Engine, dict[str, KernelText], BuildFacts]:
    is_ir = path.endswith(".mlir")
    if not is_ir and (arguments.first or arguments.weights):
        raise InvalidInputError("--from and --weights are for IR: give FILE.mlir")
    if not Path(path).is_file():
        raise InvalidInputError(f"cannot read {path}: there is no such file")
    from mlirt.builder.compile import compile as build
    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.passes.phases import find_phase
    from mlirt.passes.pipeline_edits import Pipeline
    from mlirt.tools.report.build_recorder import BuildRecorder

    config = BuildConfig(
        arguments.target,
        arguments.precision,
        weights=arguments.weights,
        from_phase=find_phase(arguments.first).name if arguments.first else None,
        pipeline=Pipeline.parse(arguments.pipeline_edit),
    )
    recorder = BuildRecorder(target=config.chosen_target())
    engine = build(path, config=config.replace(progress=recorder.progress, remarks=recorder))
    recorder.close()
    assert isinstance(engine, Engine)
    return engine, recorder.kernels, recorder.facts(() if is_ir else model_nodes(path))


def model_nodes(path: str) -> list[tuple[str, str]]:
    """The names and operators of the nodes of an ONNX model."""
    from mlirt.frontend.onnx.node_names import node_names

    return node_names(path)


def _kernels(plan: Plan, arguments: Namespace) -> dict[str, KernelText]:
    if not arguments.source:
        return {}
    names = [kernel.name for kernel in plan.manifest.kernels]
    found = kernel_sources(read_text(Path(arguments.source)), names)
    return {name: KernelText(source=text) for name, text in found.items()}
