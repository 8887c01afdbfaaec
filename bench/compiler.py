"""What the compiler itself costs: `python bench/compiler.py [--model MODEL.onnx] [--target cpu]`.

One line per budget: start-up of `rt-opt`, the passes on 2,000 ops, a file with 100 MB of weights printed by `rt-opt`,
and, with a model, a build without and with the kernel cache. CPU time counts all processes that a step starts.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
MEGABYTES = 100
BUILD = "import sys, mlirt; mlirt.compile(sys.argv[1], target=sys.argv[2])"
TOOL = "import sys; from mlirt.tools.rt_opt import main; sys.exit(main())"


@dataclass(frozen=True)
class Cost:
    """CPU time in seconds, largest resident memory in MiB."""

    cpu: float
    peak: float


def cost_of(command: list[str], **environment: str) -> Cost:
    """Run a command to its end; raises `CalledProcessError` where it fails."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | environment)
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            log.seek(0)
            raise subprocess.CalledProcessError(status, command, log.read()[-2000:])
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Cost(cpu, usage.ru_maxrss / 1024)


def heavy_model(path: Path) -> None:
    """Two matrix products whose weights take 100 MB."""
    from onnx import TensorProto, helper, numpy_helper

    side = int((MEGABYTES * 1e6 / 4 / 2) ** 0.5)
    weights = [numpy_helper.from_array(np.full((side, side), 0.5 + k, np.float32), f"w{k}") for k in range(2)]
    nodes = [
        helper.make_node("MatMul", ["x", "w0"], ["h"], name="first"),
        helper.make_node("MatMul", ["h", "w1"], ["y"], name="second"),
    ]
    ends = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [1, side]) for name in "xy"]
    graph = helper.make_graph(nodes, "heavy", ends[:1], ends[1:], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    path.write_bytes(model.SerializeToString())


def show(what: str, cost: Cost, budget: str) -> None:
    print(f"{cost.cpu:8.2f} s CPU {cost.peak:8.0f} MiB  {what:48s} budget {budget}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", help="also build this one, for example ResNet-50")
    parser.add_argument("--target", default="cpu")
    arguments = parser.parse_args()
    python = sys.executable
    opt = [python, "-c", TOOL]
    with tempfile.TemporaryDirectory() as folder:
        empty, heavy = Path(folder, "empty.mlir"), Path(folder, "heavy.onnx")
        empty.write_text("builtin.module {}\n")
        # In a process of its own: a child's peak is never below what its parent had when it started it.
        made = multiprocessing.get_context("spawn").Process(target=heavy_model, args=(heavy,))
        made.start()
        made.join()
        show("start of rt-opt", cost_of([*opt, str(empty)]), "0.7 s")
        show("start of Python and NumPy, to compare", cost_of([python, "-c", "import numpy"]), "")
        passes = [python, str(HERE / "passes.py"), "--ops", "2000", "--to", "memory", "--target", arguments.target]
        show("the passes of all phases on 2,000 ops, and start", cost_of(passes), "5 s")
        printed = cost_of([*opt, str(heavy), "-o", str(Path(folder, "heavy.mlir"))])
        show(f"import and print {MEGABYTES} MB of weights", printed, f"1 s, {3 * MEGABYTES} MB")
        if arguments.model:
            build = [python, "-c", BUILD, arguments.model, arguments.target]
            cache = str(Path(folder, "cache"))
            show("build with an empty kernel cache", cost_of(build, MLIRT_CACHE=cache), "40 s")
            show("build again", cost_of(build, MLIRT_CACHE=cache), "5 s")


if __name__ == "__main__":
    main()
