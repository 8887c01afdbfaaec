"""From a network in the `trt` dialect to an engine: passes, source, machine code, plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from xdsl.dialects.builtin import ModuleOp

from mlirt.builder.condition_setter import setter_cubins
from mlirt.builder.host import cpu_target, cuda_target, gpu_is_here
from mlirt.builder.kept_network import network_sections
from mlirt.builder.numba_cuda import ARCHITECTURES
from mlirt.builder.tactics.selection import Tuning, select_tactics, tactics_of
from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.features import features_of
from mlirt.dialects.plan.manifest import manifest_of, weight_keys
from mlirt.dialects.target import Target
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.data_types import numpy_dtype
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import make_plan
from mlirt.version import __version__

if TYPE_CHECKING:
    from mlirt.builder.compile import Progress
    from mlirt.runtime.plan_file import Plan

_CPU_MAIN = "main.o"


def build(
    module: ModuleOp,
    ctx: RtContext,
    target: str,
    precision: str = "fp32",
    progress: Progress | None = None,
    dump_phases: Path | None = None,
    name: str = "network",
    tuning: Tuning | None = None,
    spin_ms: float | None = None,
    first: str | None = None,
    architectures: Sequence[str] = ARCHITECTURES,
    *,
    refittable: bool = False,
) -> Engine:
    """The engine of a network for `cpu` or `cuda`; the module is rewritten in place.

    It is opened on a device of this machine. One for a GPU where there is none can be saved for another machine.

    `first` is the first phase to run, for a network that has been through those before it. An engine for a GPU that is
    not to be saved needs code for the `architectures` of this machine alone. A `refittable` one keeps its network, for
    builder/refit.py.
    """
    plan = build_plan(
        module, ctx, target, precision, progress, dump_phases, name, tuning, first, architectures, refittable=refittable
    )
    return Engine(plan, spin_ms, waits=target == "cuda" and not gpu_is_here())


def build_plan(
    module: ModuleOp,
    ctx: RtContext,
    target: str,
    precision: str = "fp32",
    progress: Progress | None = None,
    dump_phases: Path | None = None,
    name: str = "network",
    tuning: Tuning | None = None,
    first: str | None = None,
    architectures: Sequence[str] = ARCHITECTURES,
    *,
    refittable: bool = False,
) -> Plan:
    """The plan of a network; needs no device of its target. `tuning` says how tactics are chosen for GPUs."""
    report, choice = progress or _silent, tuning or Tuning()
    kept = network_sections(module, ctx) if refittable else {}
    tactics: list[str] = []
    machine = cpu_target() if target == "cpu" else cuda_target(precision, choice.sources)
    report("optimising the network", 0, 1)
    sizes = (machine.vector_bits, machine.threads, machine.arch or "sm_90a")
    options = PipelineOptions(
        target, precision, *sizes, sorted(machine.special | choice.sources), dump_folder=dump_phases
    )
    if target == "cuda":
        run_phases(module, ctx, first, "layout", options=options)
        select_tactics(module, ctx, machine, choice, report)
        tactics = tactics_of(module)
        report("lowering the network", 0, 1)
        run_phases(module, ctx, first="lowering", options=options)
    else:
        run_phases(module, ctx, first, options=options)
        machine = replace(machine, features=machine.features | features_of(module))
    if target == "cpu":
        code, kernels = _cpu_code(module, machine, report)
    else:
        code, kernels = _cuda_code(module, architectures, report)
    manifest = manifest_of(module, name)
    manifest.update(mlirt=__version__, target=_target_record(machine))
    if target == "cpu":
        manifest["main"] = _CPU_MAIN
        _take_inputs_where_they_lie(manifest)
    elif "program" in manifest:
        setters = setter_cubins(architectures)
        manifest["conditions"] = {arch: f"set_condition.{arch}.cubin" for arch in setters}
        code |= {f"set_condition.{arch}.cubin": cubin for arch, cubin in setters.items()}
    for record in cast("list[dict[str, object]]", manifest["kernels"]):
        record.update(kernels.get(str(record["name"]), {}))  # there is no code for what a library computes
    if kept:
        how = {"precision": precision, "sources": sorted(choice.sources), "tactics": tactics}
        manifest["info"] = {**cast("Mapping[str, object]", manifest.get("info", {})), "build": how}
    needed = set(weight_keys(module))
    return make_plan(manifest, code | kept, {key: array for key, array in ctx.weights.items() if key in needed})


def _take_inputs_where_they_lie(manifest: dict[str, object]) -> None:
    """CPU kernels read whole elements at any address, so that no caller's array needs to be copied."""
    buffers = cast("list[dict[str, object]]", manifest["buffers"])
    for tensor in cast("list[dict[str, Any]]", manifest["inputs"]):
        buffers[tensor["buffer"]]["align"] = numpy_dtype(tensor["dtype"]).itemsize


def _silent(text: str, done: int, total: int) -> None:
    """Nobody watches."""


def _target_record(machine: Target) -> dict[str, object]:
    from mlirt.runtime.host_cpu import host_triple

    return {
        "kind": machine.kind,
        "triple": host_triple() if machine.kind == "cpu" else "",
        "features": sorted(machine.features),
        "vector_bits": machine.vector_bits,
        "arch": machine.arch,
    }


Code = tuple[dict[str, bytes], Mapping[str, dict[str, object]]]


def _cpu_code(module: ModuleOp, machine: Target, report: Callable[[str, int, int], None]) -> Code:
    from mlirt.builder.numba_cpu import compile_kernels
    from mlirt.builder.spmd_main import main_object
    from mlirt.codegen.numba_cpu import kernel_source
    from mlirt.runtime.host_cpu import host_triple

    sources = {op.sym_name.data: kernel_source(op) for op in module.body.block.ops if isinstance(op, FuncOp)}
    objects = compile_kernels(sources, machine, report)
    sections = {f"{kernel}.o": code for kernel, code in objects.items()}
    sections[_CPU_MAIN] = main_object(host_triple())
    return sections, {kernel: {"symbol": kernel, "object": f"{kernel}.o"} for kernel in objects}


def _cuda_code(module: ModuleOp, architectures: Sequence[str], report: Callable[[str, int, int], None]) -> Code:
    from mlirt.builder.cubin import stored
    from mlirt.builder.numba_cuda import compile_kernels
    from mlirt.codegen.numba_cuda.kernel_source import sources_of

    return stored(compile_kernels(sources_of(module), report, architectures))
