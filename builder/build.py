"""From a network in the `trt` dialect to an engine: passes, source, machine code, plan."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.build_keys import network_key
from mlirt.builder.condition_setter import setter_cubins
from mlirt.builder.extents.section import extents_section
from mlirt.builder.gpu_code import ARCHITECTURES
from mlirt.builder.host import architectures_of_build, cpu_target, cuda_target
from mlirt.builder.kept_network import network_sections, text_section
from mlirt.builder.kept_state import KeptState, with_state
from mlirt.builder.layer_parameters import LayerParameters
from mlirt.builder.object_code import MAIN, object_records, object_sections, target_record
from mlirt.builder.opened import opened
from mlirt.builder.pipeline_record import PIPELINE, pipeline_record
from mlirt.builder.plan_cache import TAKEN, PlanCache
from mlirt.builder.plan_profiles import profile_records
from mlirt.builder.plan_writer.manifest import manifest_of, weight_keys
from mlirt.builder.profiles import read_profiles
from mlirt.builder.tactics.selection import Tuning, is_ample, select_tactics, tactics_of
from mlirt.counted_warnings import warnings_so_far
from mlirt.dialects.context import RtContext
from mlirt.dialects.fast_math import DEFAULT
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.features import features_of
from mlirt.dialects.pass_plugins import active
from mlirt.dialects.target import Target
from mlirt.errors import reports_shortage
from mlirt.passes.pass_levels import LevelWarnings
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.passes.pipeline_edits import Pipeline
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.engine import Engine
from mlirt.runtime.garbage_collection import rare_collections
from mlirt.runtime.plan_file import make_plan
from mlirt.version import __version__

if TYPE_CHECKING:
    from mlirt.builder.config.build_config import BuildConfig, Progress
    from mlirt.builder.profiles import Profile
    from mlirt.runtime.plan_file import Plan


@dataclass(frozen=True)
class BuildOptions:
    """How a network is built."""

    precision: str = "fp32"
    progress: Progress | None = None
    dump_phases: Path | None = None
    """Where each phase leaves its text."""
    name: str = "network"
    tuning: Tuning = field(default_factory=Tuning)
    """How tactics are chosen for GPUs."""
    first: str | None = None
    """The first phase to run, for a network that has been through those before it."""
    architectures: Sequence[str] = ARCHITECTURES
    """Of GPUs that there is code for; an engine that is not to be saved needs it for this machine's alone."""
    refittable: bool = False
    """Whether the plan keeps its network, for builder/refit.py."""
    profiles: Sequence[Mapping[str, Profile]] = ()
    """The shapes that runs may have: each run's are within one of them, where there are any."""
    frees_weights: bool = False
    """Whether nobody else needs the arrays of the context, which then stay no longer than the build needs them."""
    temporary: bool = False
    """Whether the engine is for this process alone, which trusts its numbers: for this machine's architecture, and with
    launches that are sealed, but without what their kernels touch.
    """
    kept_as: Sequence[str] = ()
    """Other keys under which the plan is kept, if it is kept (builder/plan_cache.py)."""
    pipeline: Pipeline = field(default_factory=Pipeline)
    """The compiler's own, or a changed one."""
    state: Sequence[KeptState] = ()
    """Inputs that are outputs of the run before."""
    fast_math: Sequence[str] = DEFAULT
    """Which rewritings that change results are permitted."""

    @staticmethod
    def of(config: BuildConfig, **more: Any) -> BuildOptions:
        """What a configuration says of the build of a network, and `more` that it does not know."""
        given: dict[str, Any] = {
            "precision": config.precision,
            "fast_math": config.fast_math,
            "progress": config.progress,
            "dump_phases": None if config.dump_phases is None else Path(config.dump_phases),
            "refittable": config.refittable,
            "profiles": read_profiles(config.profiles),
        }
        return BuildOptions(**(given | more))

    def report(self, text: str) -> None:
        """Say what begins."""
        if self.progress is not None:
            self.progress(text, 0, 1)


def build(
    module: ModuleOp,
    ctx: RtContext,
    target: str,
    options: BuildOptions | None = None,
    config: BuildConfig | None = None,
) -> Engine:
    """The engine of a network for `cpu` or `cuda`; the module is rewritten in place.

    Of the configuration counts how engines run.
    """
    return opened(build_plan(module, ctx, target, options), target, config)


@reports_shortage("the build")
@rare_collections()
def build_plan(module: ModuleOp, ctx: RtContext, target: str, options: BuildOptions | None = None) -> Plan:
    """The plan of a network; needs no device of its target. One that was built before is taken from the cache."""
    options = options or BuildOptions()
    cache = PlanCache()
    key = network_key(module, ctx, target, options) if cache.is_open else None
    if key is None:
        return _new_plan(module, ctx, target, options)
    found = cache.get(key)
    if found is not None:
        options.report(TAKEN)
        cache.point(key, options.kept_as)
        return found
    warned = warnings_so_far()
    plan = _new_plan(module, ctx, target, options)
    if warnings_so_far() == warned:
        cache.put([key, *options.kept_as], plan)
    return plan


def _new_plan(module: ModuleOp, ctx: RtContext, target: str, options: BuildOptions) -> Plan:
    kept = network_sections(module, ctx) if options.refittable else {} if options.temporary else text_section(module)
    parameters = LayerParameters(module)
    if target == "cpu":
        machine = _lowered_for_cpu(module, ctx, options)
        tactics, (code, kernels) = [], _cpu_code(module, machine, options.progress or _silent)
    else:
        machine, tactics = _lowered_for_cuda(module, ctx, options)
        code, kernels = _cuda_code(module, _architectures(options), options.progress or _silent)
    manifest = manifest_of(module, options.name)
    parameters.add_to(cast("list[dict[str, object]]", manifest["layers"]))
    manifest.update(mlirt=__version__, target=target_record(machine))
    if options.profiles:
        inputs = cast("list[dict[str, Any]]", manifest["inputs"])
        manifest["profiles"] = profile_records(options.profiles, inputs)
    if target == "cpu":
        manifest["main"] = MAIN
        _take_arrays_where_they_lie(manifest)
    elif "program" in manifest:
        setters = setter_cubins(_architectures(options))
        manifest["conditions"] = {arch: f"set_condition.{arch}.cubin" for arch in setters}
        code |= {f"set_condition.{arch}.cubin": cubin for arch, cubin in setters.items()}
    for record in cast("list[dict[str, object]]", manifest["kernels"]):
        record.update(kernels.get(str(record["name"]), {}))  # there is no code for what a library computes
    if options.refittable:
        sources = sorted(options.tuning.sources)
        how: dict[str, object] = {"precision": options.precision, "sources": sources, "tactics": tactics}
        how["fast_math"] = list(options.fast_math)
        if options.first is not None:
            how["first"] = options.first
        manifest["info"] = {**cast("Mapping[str, object]", manifest.get("info", {})), "build": how}
    if tuple(options.fast_math) != DEFAULT:
        manifest["info"] = {**cast("Mapping[str, object]", manifest.get("info", {})), "fast_math": options.fast_math}
    if options.pipeline.edits or active():
        used = pipeline_record(options.pipeline, _pipeline_options(machine, options))
        manifest["info"] = {**cast("Mapping[str, object]", manifest.get("info", {})), PIPELINE: used}
    needed = set(weight_keys(module))
    plan = with_state(make_plan(manifest, code | kept, ctx.weights.for_kernels(needed)), options.state)
    if options.temporary:
        return plan
    return plan.with_extents(extents_section(module, plan.manifest, plan.manifest_json))


def _architectures(options: BuildOptions) -> Sequence[str]:
    return [cuda_target().arch] if options.temporary else architectures_of_build(options.architectures)


def _lowered_for_cpu(module: ModuleOp, ctx: RtContext, options: BuildOptions) -> Target:
    """Turn the network into kernels for this machine, and say which features of it they use."""
    machine = cpu_target()
    options.report("optimising the network")
    pipeline, first = _pipeline_options(machine, options), options.first
    tuning = options.tuning
    chosen = tuning.timer is not None or tuning.selector is not None
    if (chosen or tuning.workspace is not None) and first not in ("lowering", "memory"):
        run_phases(module, ctx, first, "layout", options=pipeline)
        if tuning.workspace is None or not is_ample(module, tuning.workspace):
            select_tactics(module, ctx, machine, tuning, options.progress or _silent)
        elif chosen:
            select_tactics(module, ctx, machine, replace(tuning, workspace=None), options.progress or _silent)
        first = "lowering"
    run_phases(module, ctx, first, options=pipeline)
    return replace(machine, features=machine.features | features_of(module))


def _lowered_for_cuda(module: ModuleOp, ctx: RtContext, options: BuildOptions) -> tuple[Target, list[str]]:
    """Turn the network into kernels for a GPU, and say which one, and the tactics of its layers."""
    machine = cuda_target(options.precision, options.tuning.sources)
    options.report("optimising the network")
    pipeline = _pipeline_options(machine, options)
    if options.first in ("lowering", "memory"):
        last = options.first
    else:
        run_phases(module, ctx, options.first, "layout", options=pipeline)
        last = "lowering"
    if last == "lowering":
        select_tactics(module, ctx, machine, options.tuning, options.progress or _silent)
    tactics = tactics_of(module)
    options.report("lowering the network")
    run_phases(module, ctx, first=last, options=pipeline)
    return machine, tactics


def _pipeline_options(machine: Target, options: BuildOptions) -> PipelineOptions:
    chosen = PipelineOptions(
        machine.kind,
        options.precision,
        replace(TargetMachine.of(machine, options.tuning.sources), fast_math=options.fast_math),
        dump_folder=options.dump_phases,
        frees_weights=options.frees_weights,
    )
    if options.pipeline.edits:
        chosen.pipeline, chosen.instruments = options.pipeline, [LevelWarnings(warnings.warn)]
    return chosen


def _take_arrays_where_they_lie(manifest: dict[str, object]) -> None:
    """CPU kernels read and write whole elements at any address, so that no caller's array needs to be copied."""
    buffers = cast("list[dict[str, object]]", manifest["buffers"])
    inputs, outputs = (cast("list[dict[str, Any]]", manifest[kind]) for kind in ("inputs", "outputs"))
    for tensor in (*inputs, *outputs):
        if buffers[tensor["buffer"]]["kind"] in ("input", "output"):
            buffers[tensor["buffer"]]["align"] = numpy_dtype(tensor["dtype"]).itemsize


def _silent(text: str, done: int, total: int) -> None:
    """Nobody watches."""


Code = tuple[dict[str, bytes], Mapping[str, dict[str, object]]]


def _cpu_code(module: ModuleOp, machine: Target, report: Callable[[str, int, int], None]) -> Code:
    from mlirt.builder.numba_cpu import compile_kernels
    from mlirt.codegen.numba_cpu import kernel_source

    sources = {op.sym_name.data: kernel_source(op) for op in module.body.block.ops if isinstance(op, FuncOp)}
    objects = compile_kernels(sources, machine, report)
    return object_sections(objects, machine), object_records(objects)


def _cuda_code(module: ModuleOp, architectures: Sequence[str], report: Callable[[str, int, int], None]) -> Code:
    from mlirt.builder.cubin import stored
    from mlirt.builder.numba_cuda import compile_kernels
    from mlirt.codegen.numba_cuda.kernel_source import sources_of

    return stored(compile_kernels(sources_of(module), report, architectures))
