"""Whether rt-debug finds faults that are planted in ten networks, and how small and how fast it makes the rest.

    python bench/debug.py [--only NAME,..] [--folder FOLDER]

In the middle of each network stands a wrong rewrite (of a layer, or of a launch, in turns), then a wrong tactic.
`rt-debug bisect` has to name the pass and the layer, or the kernel and the layer; `rt-debug reduce` has to leave five
ops at most, on which bisect has to find the same. Seconds are those of the CPU, of the command and all that it starts.
The exit code is 1 where one of these fails.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

import onnx
from debug_networks import NETWORKS, SHAPES, Fault, wrong_fusion, wrong_rewrite, wrong_tactic
from xdsl.dialects.builtin import Float32Type, ModuleOp
from xdsl.ir import Operation

from mlirt.builder.host import cpu_target
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.locations import names
from mlirt.dialects.tensor_types import dims, element_of, is_tensor
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.tools.input_files import InputFile, load_network

MAX_OPS = 5
MAX_SECONDS = 180.0
_MAX_TRIES = 8


@dataclass(frozen=True)
class Done:
    """A call of rt-debug."""

    code: int
    lines: list[str]
    cpu: float
    wall: float

    @property
    def finding(self) -> str:
        """What was guilty, and where, in one line; empty where nothing was."""
        found = [line.strip() for line in self.lines if line.startswith(("guilty:", "  at "))]
        return " ".join(found)


def rt_debug(arguments: Sequence[str], folder: Path) -> Done:
    """Call it in a folder."""
    before, start = os.times(), perf_counter()
    command = [sys.executable, "-m", "mlirt.tools.rt_debug", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return Done(done.returncode, (done.stdout + done.stderr).splitlines(), cpu, perf_counter() - start)


def faults(model: Path, kind: str) -> Iterator[tuple[str, Fault]]:
    """Faults of a kind with the layer of each, the one in the middle of the network first."""
    ctx = RtContext()
    module = load_network(ctx, InputFile(str(model)))
    here = cpu_target()
    options = PipelineOptions(machine=TargetMachine.of(here))
    run_phases(module, ctx, None, {"rewrite": "cleanup", "fusion": "fusion", "tactic": "layout"}[kind], options)
    ops = list(_layers(module) if kind == "rewrite" else _launches(module))
    middle = len(ops) // 2
    for op in sorted(ops, key=lambda one: abs(ops.index(one) - middle)):
        if kind == "tactic":
            op = next(one for one in ops if one.name == op.name and shapes_of(one) == shapes_of(op))
        layer = names(op.location)[0]
        if kind == "rewrite":
            yield layer, wrong_rewrite(layer, op.name)
        elif kind == "fusion":
            yield layer, wrong_fusion(layer, op.name)
        else:
            file = type(op).__module__.rpartition(".")[2]
            yield layer, wrong_tactic(layer, file, type(op).__name__, shapes_of(op))


def shapes_of(op: Operation) -> str:
    """The lengths of all that a launch reads and writes."""
    return str([dims(value.type) for value in (*op.operands, *op.results)])


def _layers(module: ModuleOp) -> Iterator[Operation]:
    for op in module.walk():
        if op.dialect_name() == "trt" and not isinstance(op, ConstantOp) and _is_plain(op):
            yield op


def _launches(module: ModuleOp) -> Iterator[Operation]:
    for op in module.walk():
        if isinstance(op, FusedOp) and op.regions and _is_plain(op):
            last = op.regions[-1].block.last_op
            if last is not None and len(last.operands) == 1 and isinstance(last.operands[0].type, Float32Type):
                yield op


def _is_plain(op: Operation) -> bool:
    """Whether an op has a layer's name and one result of float32."""
    types = [result.type for result in op.results]
    return bool(names(op.location)) and len(types) == 1 and is_tensor(types[0]) and _is_float32(op)


def _is_float32(op: Operation) -> bool:
    return isinstance(element_of(op.results[0].type), Float32Type)


@dataclass(frozen=True)
class Outcome:
    """What came of one fault in one network."""

    layer: str
    bisected: Done
    reduced: Done
    ops: int
    again: Done
    problems: tuple[str, ...]


def outcome(folder: Path, kind: str, shapes: str = "") -> Outcome:
    """Plant a fault that shows in the outputs of `model.onnx` for inputs of some shapes, and look for it."""
    given = [f"--shapes={shapes}"] if shapes else []
    for layer, fault in list(faults(folder / "model.onnx", kind))[:_MAX_TRIES]:
        file = f"{kind}.py"
        (folder / file).write_text(fault.text, encoding="utf-8")
        flags = fault.flags(file)
        bisected = rt_debug(["bisect", "model.onnx", *given, *flags], folder)
        if bisected.lines[-1:] == ["nothing is wrong within the bound"]:
            continue  # what is behind it does not pass it on
        reduced = rt_debug(["reduce", "model.onnx", *given, *flags, "-o", f"{kind}.mlir"], folder)
        again = rt_debug(["bisect", f"{kind}.mlir", f"--input={kind}.npz", *flags], folder)
        ops = _ops_left(reduced)
        left = "" if kind == "tactic" else layer  # the part may hold another launch that the tactic is wrong for
        problems = [
            f"{what} says {done.finding or done.lines[-1:]}"
            for what, done, where in (("bisect", bisected, layer), ("bisect of the part", again, left))
            if not is_found(done, fault, where)
        ]
        if not 1 <= ops <= MAX_OPS:
            problems.append(f"reduce leaves {ops} ops: {reduced.lines[-1:]}")
        if reduced.wall > MAX_SECONDS:
            problems.append(f"reduce took {reduced.wall:.0f} s")
        return Outcome(layer, bisected, reduced, ops, again, tuple(problems))
    raise RuntimeError(f"no {kind} planted in {folder.name} shows in its outputs")


def is_found(done: Done, fault: Fault, layer: str) -> bool:
    """Whether bisect named the fault and its layer."""
    what = "guilty: kernel:" if fault.kind == "tactic" else "guilty: pass number"
    return done.finding.startswith(what) and fault.name in done.finding and layer in done.finding


def _ops_left(reduced: Done) -> int:
    count = reduced.lines[-1].partition(" layer")[0] if reduced.lines else ""
    return int(count) if count.isdigit() and reduced.code == 0 else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="networks, separated by commas")
    parser.add_argument("--folder", type=Path, help="where files stay that are written (default: nowhere)")
    options = parser.parse_args()
    chosen = options.only.split(",") if options.only else list(NETWORKS)
    with tempfile.TemporaryDirectory() as temporary:
        return _table(chosen, options.folder or Path(temporary))


def _table(chosen: Sequence[str], root: Path) -> int:
    failed = 0
    print(
        f"{'network':16} {'nodes':>5} {'fault':8} {'at':28} {'bisect s':>8} {'reduce s':>8} {'ops':>3}  found",
        flush=True,
    )
    for number, name in enumerate(chosen):
        folder = root / name.replace(" ", "_")
        folder.mkdir(parents=True, exist_ok=True)
        model = NETWORKS[name]()
        (folder / "model.onnx").write_bytes(model.SerializeToString(deterministic=True))
        for kind in ("rewrite" if number % 2 == 0 else "fusion", "tactic"):
            found = outcome(folder, kind, SHAPES.get(name, ""))
            failed += bool(found.problems)
            times = f"{found.bisected.cpu:8.1f} {found.reduced.cpu:8.1f} {found.ops:3}"
            said = "; ".join(found.problems) or "yes"
            print(f"{name:16} {_nodes(model):5} {kind:8} {found.layer[:28]:28} {times}  {said}", flush=True)
    print("all are found" if not failed else f"{failed} are not found")
    return 1 if failed else 0


def _nodes(model: onnx.ModelProto) -> int:
    return len(model.graph.node)


if __name__ == "__main__":
    sys.exit(main())
