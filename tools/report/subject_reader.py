"""Makes what a page is about out of a file: a plan is read, a model or IR is built while the report watches."""

from __future__ import annotations

import sys
from argparse import Namespace
from pathlib import Path

from mlirt.errors import InvalidInputError, MlirtError
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.plan_file import Plan, read_plan
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.tools.report.kernel_sources import kernel_sources
from mlirt.tools.report.kernel_texts import KernelText
from mlirt.tools.report.launch_times import LaunchTime, read_times
from mlirt.tools.report.measured_times import measured_times
from mlirt.tools.report.subject import BuildFacts, Subject
from mlirt.tools.report.text_files import read_text
from mlirt.tools.report.usual_shapes import usual_binding

_MODELS = (".onnx", ".mlir")
_USUAL_RUNS = 10


def subject_of(path: str, profile: str | None, arguments: Namespace) -> Subject:
    """The subject of a file, its launches timed as the flags say.

    A model that is built here is run, unless --runs says otherwise or it is for another machine; a plan only on demand.
    """
    label = Path(path).name
    if not path.endswith(_MODELS):
        plan = read_plan(path)
        binding = usual_binding(plan.manifest, arguments.shapes)
        engine = load(path) if arguments.runs and not profile else None
        return Subject(
            label, plan, binding, _times(engine, plan, binding, profile, arguments), _kernels(plan, arguments)
        )
    engine, kernels, build = _built(path, arguments)
    binding = usual_binding(engine.plan.manifest, arguments.shapes)
    times = _times(engine, engine.plan, binding, profile, arguments)
    return Subject(label, engine.plan, binding, times, kernels | _kernels(engine.plan, arguments), build)


def _built(path: str, arguments: Namespace) -> tuple[Engine, dict[str, KernelText], BuildFacts]:
    from mlirt.builder.compile import chosen_target
    from mlirt.builder.compile import compile as build
    from mlirt.tools.report.build_recorder import BuildRecorder

    recorder = BuildRecorder(target=chosen_target(arguments.target))
    is_ir = path.endswith(".mlir")
    ir = {"weights": arguments.weights, "from_phase": arguments.first} if is_ir else {}
    if not is_ir and (arguments.first or arguments.weights):
        raise InvalidInputError("--from and --weights are for IR: give FILE.mlir")
    if not Path(path).is_file():
        raise InvalidInputError(f"cannot read {path}: there is no such file")
    engine = build(path, arguments.target, arguments.precision, progress=recorder.progress, remarks=recorder, **ir)
    recorder.close()
    assert isinstance(engine, Engine)
    return engine, recorder.kernels, recorder.facts(() if is_ir else model_nodes(path))


def model_nodes(path: str) -> list[tuple[str, str]]:
    """The names and operators of the nodes of an ONNX model."""
    from mlirt.frontend.onnx.node_names import node_names

    return node_names(path)


def _times(
    engine: Engine | None, plan: Plan, binding: ShapeBinding, profile: str | None, arguments: Namespace
) -> list[LaunchTime] | None:
    """From the file, else measured; a build whose network does not run on random numbers has none unless asked."""
    if profile:
        return read_times(Path(profile), len(plan.manifest.launches))
    runs = _USUAL_RUNS if arguments.runs is None else arguments.runs
    if engine is None or not runs:
        return None
    try:
        return measured_times(engine, binding, runs)
    except MlirtError as error:
        if arguments.runs:
            raise
        print(f"rt-report: no times: {' '.join(str(error).split())}", file=sys.stderr)
        return None


def _kernels(plan: Plan, arguments: Namespace) -> dict[str, KernelText]:
    if not arguments.source:
        return {}
    names = [kernel.name for kernel in plan.manifest.kernels]
    found = kernel_sources(read_text(Path(arguments.source)), names)
    return {name: KernelText(source=text) for name, text in found.items()}
