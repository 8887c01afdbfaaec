"""The part `activations` of bench/growth.py: what a plan holds at once, and what its arena takes, in MiB.

Graph: the largest set of values between nodes that somebody still reads. Plan: the same of the buffers of the arena,
scratch and borders included. The arena should be at most 1.15 of what the plan holds, and not above what a process
grows by in which onnxruntime runs the network three times. Nothing is compiled. FOLDER has NAME.onnx or
NAME/model.onnx, and may have inputs as NAME.npz or NAME/inputs.npz; else open dimensions are 1, those of images 224,
others 64.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import onnx
from growth_activation_networks import NETWORKS
from growth_live_sets import read

from mlirt.builder.host import cpu_target, cuda_target
from mlirt.builder.plan_writer.manifest import manifest_of, weight_keys
from mlirt.builder.tactics.selection import Tuning, select_tactics
from mlirt.dialects.context import RtContext
from mlirt.dialects.target import Target
from mlirt.errors import MlirtError
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.host_cpu import thread_count
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.manifest_parser import parse_manifest
from mlirt.runtime.shape_binding import ShapeBinder
from mlirt.runtime.worker_pool import most_parts

Feeds = dict[str, np.ndarray[Any, np.dtype[Any]]]
TARGETS = ("cpu", "cuda")
_IMAGE, _LENGTH = 224, 64
_WANTED = 1.15
_MIN_MEBIBYTES = 0.25  # MiB, below which neither ratio says anything


class Case(NamedTuple):
    """A network, its inputs, and whether its open dimensions are left open or become those of the inputs."""

    name: str
    model: onnx.ModelProto
    feeds: Feeds
    is_open: bool


class Memory(NamedTuple):
    """MiB that a plan holds at once, and those of its arena."""

    live: float
    arena: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", nargs="?", type=Path, help="models besides the generated ones")
    parser.add_argument("--only", default="", help="names of networks, with ; between them")
    parser.add_argument("--targets", default=",".join(TARGETS), help="default: %(default)s")
    parser.add_argument("--shapes", default="static,dynamic", help="default: %(default)s")
    parser.add_argument("--alone", action="store_true", help="without onnxruntime, and what the graph holds")


def run(arguments: argparse.Namespace) -> None:
    only = set(arguments.only.split(";")) if arguments.only else set[str]()
    print(f"{'network':40s} {'graph':>8s} {'ort':>8s}   target: plan, arena (arena / plan, arena / graph)")
    above: list[str] = []
    for case in _cases(arguments.folder, only, arguments.shapes.split(",")):
        graph, peer = (0.0, 0.0) if arguments.alone else _in_a_child(case)
        line = f"{case.name:40s} {graph:8.2f} {peer:8.2f} "
        for target in arguments.targets.split(","):
            try:
                memory = planned(case, target)
            except MlirtError as error:
                line += f"  {target}: {str(error)[:60]}"
                continue
            within = memory.arena / max(memory.live, 1e-9)
            of_graph = memory.arena / max(graph, 1e-9)
            line += f"  {target}: {memory.live:.2f}, {memory.arena:.2f} ({within:.2f}, {of_graph:.2f})"
            if memory.arena > max(_WANTED * memory.live, _MIN_MEBIBYTES):
                above.append(f"{case.name} on {target}: {within:.2f} of what is alive")
            if not arguments.alone and memory.arena > max(peer, _MIN_MEBIBYTES):
                above.append(f"{case.name} on {target}: {memory.arena:.2f} MiB, onnxruntime {peer:.2f}")
        print(line, flush=True)
    print(f"above {_WANTED} of what is alive, or above onnxruntime: {len(above)}")
    for text in above:
        print(f"  {text}")


def planned(case: Case, target: str) -> Memory:
    """What the plan of a network takes, where its kernels are not compiled."""
    manifest = manifest_for(case, target)
    binder = ShapeBinder(manifest, most_parts(thread_count()))
    binding = binder.bind([case.feeds[one.name].shape for one in manifest.given_inputs])
    return Memory(binding.live_bytes / 2**20, binding.arena_bytes / 2**20)


def _ignore(*_: object) -> None:
    """A watcher of progress that says nothing."""


def manifest_for(case: Case, target: str) -> Manifest:
    """The table of contents of a plan without code."""
    shapes = {} if case.is_open else {name: array.shape for name, array in case.feeds.items()}
    ctx = RtContext()
    module = import_model(case.model, ctx, shapes)
    machine: Target = cpu_target() if target == "cpu" else cuda_target()
    options = PipelineOptions(machine.kind, "fp32", TargetMachine.of(machine))
    if target == "cuda":
        run_phases(module, ctx, None, "layout", options=options)
        select_tactics(module, ctx, machine, Tuning(), _ignore)
        run_phases(module, ctx, first="lowering", options=options)
    else:
        run_phases(module, ctx, options=options)
    record = cast("dict[str, Any]", manifest_of(module, case.name))
    record["target"] = {"kind": target, "triple": "", "arch": machine.arch}
    record["main"] = "main"
    for kernel in record["kernels"]:
        kernel.setdefault("object", "object")
    needed = set(weight_keys(module))
    sizes_of = {key: array.nbytes for key, array in ctx.weights.items() if key in needed}
    return parse_manifest(record, ["object", "main"], sizes_of)


def _cases(folder: Path | None, only: set[str], shapes: list[str]) -> Iterator[Case]:
    for name, (batch, network) in NETWORKS.items():
        if only and name not in only:
            continue
        for kind in shapes:
            model = network(batch if kind == "static" else "batch")
            yield Case(f"{name}, {kind}", model, _feeds(network(batch), {}), kind == "dynamic")
    for path in _models(folder):
        name = path.parent.name if path.stem == "model" else path.stem
        if only and name not in only:
            continue
        model = read(path)
        given = path.with_name("inputs.npz") if path.stem == "model" else path.with_suffix(".npz")
        feeds = _feeds(model, dict(np.load(given)) if given.exists() else {})
        for kind in shapes:
            yield Case(f"{name}, {kind}", model, feeds, kind == "dynamic")


def _models(folder: Path | None) -> list[Path]:
    return [] if folder is None else sorted([*folder.glob("*.onnx"), *folder.glob("*/model.onnx")])


def _feeds(model: onnx.ModelProto, given: Feeds) -> Feeds:
    """Inputs for a model: those that are given, and random ones."""
    weights = {weight.name for weight in model.graph.initializer}
    random, feeds = np.random.default_rng(0), Feeds()
    for value in model.graph.input:
        if value.name in weights:
            continue
        kind = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        dims = value.type.tensor_type.shape.dim
        shape = [dim.dim_value or _open(len(dims), axis) for axis, dim in enumerate(dims)]
        feeds[value.name] = given.get(value.name, random.integers(0, 2, shape).astype(kind))
    return feeds


def _open(rank: int, axis: int) -> int:
    return 1 if axis == 0 else _IMAGE if rank == 4 and axis > 1 else _LENGTH


def _in_a_child(case: Case) -> tuple[float, float]:
    with tempfile.TemporaryDirectory() as folder:
        model, inputs = Path(folder, "model.onnx"), Path(folder, "inputs.npz")
        model.write_bytes(case.model.SerializeToString())
        np.savez(inputs, allow_pickle=False, **case.feeds)
        script = Path(__file__).with_name("growth_live_sets.py")
        done = subprocess.run([sys.executable, script, model, inputs], check=False, stdout=subprocess.PIPE, text=True)
    numbers = done.stdout.split()
    return (float(numbers[0]), float(numbers[1])) if len(numbers) == 2 else (float("nan"), float("nan"))
