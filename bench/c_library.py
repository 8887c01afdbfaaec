"""C libraries of three networks: the same bits as the Python runtime's, and what they cost.

python bench/c_library.py OUT [--threads N] [--small] [--cpu NAME] [--device cuda [--export | --ready]]

ResNet-18 at batch 1, an LSTM of 64 cells whose steps are an ONNX loop, and BERT (12 layers, 768 wide) of any length,
all with random weights. Each is exported into OUT/NAME; `bench/c_library_run.c` is compiled with it, and runs in
processes of its own. Columns:

bits      whether all outputs of all shapes have the bytes that `Engine.run` gives
start     milliseconds from the start of a process to its end, with one result in between and the library in the page
          cache: the least of some processes
create, first, next   milliseconds of the handle, of the first run, and the median of runs after it
besides   bytes of the library besides weights
leaks     what valgrind finds in a process, where it is there

`--cpu` names the processor that they are for. valgrind has no AVX-512: with `--cpu x86-64-v3` it runs them anywhere.
`--small` takes a narrower BERT, and for CUDA a narrower ResNet. The exit code is 1 where bits differ or something
leaks.

With `--device cuda` the libraries are for a CUDA device (ResNet-18 in half precision). `--export` makes them and stops;
`--ready` measures those that OUT has, for a machine that has the device and no compiler of networks. Columns:

bits      of `net_run` in this process, of the program in one of its own, and of `net_run_device`
start     milliseconds of a process with one result, and those of one with the Python runtime, which loads the same plan
create, first, next   milliseconds of the handle, of the first run, and the median of runs after it; then the median of
          `Engine.run`, both with arrays of the host, and those of a queued run on arrays of the device
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from c_library_cuda import HEAD, make
from c_library_cuda import measure as measure_cuda
from convolutional_networks import resnet18
from graph_writer import GraphWriter, floats
from onnx import TensorProto, helper
from transformer_network import BertSizes, bert_base

import mlirt
from mlirt.runtime.engine_interface import EngineLike

Array = np.ndarray[Any, np.dtype[Any]]
Feeds = Mapping[str, Array]
PROGRAM = Path(__file__).parent / "c_library_run.c"
_PROCESSES = 15


@dataclass(frozen=True)
class Case:
    """A network and the inputs of its runs."""

    name: str
    model: onnx.ModelProto
    runs: Sequence[Feeds]
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Of the build."""


def lstm_loop(inputs: int = 32, cells: int = 64, seed: int = 0) -> onnx.ModelProto:
    """An LSTM over x [steps, inputs], one step an iteration: the last state, and that of each step."""
    write = GraphWriter(seed)
    weights = write.normal("w", (inputs, 4 * cells), 0.2), write.normal("r", (cells, 4 * cells), 0.2)
    bias = write.normal("b", (4 * cells,), 0.2)
    zeros = write.constant("zeros", np.zeros((1, cells), np.float32))
    axis, whole = write.constant("axis", np.array([0], np.int64)), write.constant("first", np.array(0, np.int64))
    count = write.node("Gather", [write.node("Shape", ["x"]), whole])
    nodes = [
        helper.make_node("Gather", ["x", "i"], ["row"]),
        helper.make_node("Unsqueeze", ["row", axis], ["step"]),
        helper.make_node("MatMul", ["step", weights[0]], ["from_input"]),
        helper.make_node("MatMul", ["h", weights[1]], ["from_state"]),
        helper.make_node("Add", ["from_input", "from_state"], ["sum"]),
        helper.make_node("Add", ["sum", bias], ["gates"]),
        helper.make_node("Split", ["gates"], ["gi", "go", "gf", "gc"], axis=1),
        helper.make_node("Sigmoid", ["gi"], ["entry"]),
        helper.make_node("Sigmoid", ["go"], ["o"]),
        helper.make_node("Sigmoid", ["gf"], ["f"]),
        helper.make_node("Tanh", ["gc"], ["new"]),
        helper.make_node("Mul", ["f", "c"], ["kept"]),
        helper.make_node("Mul", ["entry", "new"], ["added"]),
        helper.make_node("Add", ["kept", "added"], ["c_next"]),
        helper.make_node("Tanh", ["c_next"], ["shown"]),
        helper.make_node("Mul", ["o", "shown"], ["h_next"]),
        helper.make_node("Identity", ["h_next"], ["y"]),
        helper.make_node("Identity", ["go_in"], ["go_out"]),
    ]
    body = helper.make_graph(
        nodes,
        "step",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go_in", TensorProto.BOOL, []),
            floats("h", 1, cells),
            floats("c", 1, cells),
        ],
        [
            helper.make_tensor_value_info("go_out", TensorProto.BOOL, []),
            floats("h_next", 1, cells),
            floats("c_next", 1, cells),
            floats("y", 1, cells),
        ],
    )
    write.append("Loop", [count, "", zeros, zeros], ["h_last", "c_last", "states"], body=body)
    outputs = [floats("h_last", 1, cells), floats("c_last", 1, cells), floats("states", "steps", 1, cells)]
    return write.model("lstm_loop", [floats("x", "steps", inputs)], outputs)


def cases(*, is_small: bool, for_cuda: bool = False) -> list[Case]:
    """The three networks."""
    random = np.random.default_rng(1)
    sizes = BertSizes(open_length="length")
    if is_small:
        sizes = BertSizes(layers=2, width=64, heads=4, hidden=128, open_length="length", vocabulary=100, positions=64)

    def tokens(length: int) -> Feeds:
        ids = random.integers(0, sizes.vocabulary, (1, length))
        mask = (np.arange(length) < max(1, length - 3)).astype(np.int64)[None]
        return {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}

    images = [{"input": random.standard_normal((1, 3, 224, 224), np.float32)}]
    narrow = resnet18(1, first=32 if is_small and for_cuda else 64)
    return [
        Case("resnet18", narrow, images, {"precision": "fp16"} if for_cuda else {}),
        Case("lstm", lstm_loop(), [{"x": random.standard_normal((n, 32), np.float32)} for n in (20, 1, 7)]),
        Case("bert", bert_base(1, sizes=sizes), [tokens(length) for length in (16, 1, 5, 33, 64)]),
    ]


def measure(case: Case, folder: Path, threads: int, cpu: str | None = None) -> tuple[str, bool]:
    """A row of the table, and whether bits and memory are as they should be."""
    engine = mlirt.compile(case.model, target="cpu", cpu=cpu)
    library = mlirt.export_c(engine, folder)
    program = folder / "run"
    linking = [f"-I{folder}", f"-L{folder}", "-lnet", "-Wl,-rpath,$ORIGIN"]
    subprocess.run(["cc", "-O2", str(PROGRAM), "-o", str(program), *linking], check=True)
    is_same = all(_same_bits(engine, feeds, program, threads) for feeds in case.runs)
    command = run_command(engine, case.runs[0], program, threads)
    times = [_timed(command, folder) for _ in range(_PROCESSES)]
    start = min(total for total, _ in times)
    create, first, after = (min(parts[k] for _, parts in times) for k in range(3))
    assert isinstance(engine, mlirt.Engine)
    weights = sum(array.nbytes for array in engine.plan.weights.values())
    besides = library.stat().st_size - weights
    shortest = min(case.runs, key=lambda feeds: sum(array.size for array in feeds.values()))
    leaks = _leaks(run_command(engine, shortest, program, threads), folder)
    row = f"{case.name:9} {'same' if is_same else 'DIFFER':6} {start:6.1f} {create:7.2f} {first:7.2f} {after:7.2f}"
    return f"{row} {besides:9} {weights:11} {leaks}", is_same and leaks in ("none", "no valgrind")


def run_command(engine: EngineLike, feeds: Feeds, program: Path, threads: int) -> list[str]:
    found = [str(program), str(threads)]
    for number, tensor in enumerate(engine.inputs):
        (program.parent / f"input_{number}.bin").write_bytes(feeds[tensor.name].tobytes())
        found += [f"input_{number}.bin", ",".join(map(str, feeds[tensor.name].shape))]
    return found


def _same_bits(engine: EngineLike, feeds: Feeds, program: Path, threads: int) -> bool:
    subprocess.run(run_command(engine, feeds, program, threads), cwd=program.parent, check=True, capture_output=True)
    expected = engine.run(feeds)
    found = [(program.parent / f"output_{number}.bin").read_bytes() for number in range(len(expected))]
    return found == [array.tobytes() for array in expected.values()]


def _timed(command: Sequence[str], folder: Path) -> tuple[float, list[float]]:
    """Milliseconds of a process that makes one run, and those of the parts of one that makes more."""
    start = time.perf_counter()
    subprocess.run([*command, "1"], cwd=folder, check=True, capture_output=True)
    total = (time.perf_counter() - start) * 1e3
    done = subprocess.run([*command, "8"], cwd=folder, check=True, capture_output=True, text=True)
    return total, [float(word) for word in done.stdout.split()]


def _leaks(command: Sequence[str], folder: Path) -> str:
    if shutil.which("valgrind") is None:
        return "no valgrind"
    check = ["valgrind", "--quiet", "--leak-check=full", "--show-leak-kinds=all", "--error-exitcode=99"]
    done = subprocess.run([*check, *command, "1"], cwd=folder, capture_output=True, text=True, check=False)
    return "none" if done.returncode == 0 else f"exit code {done.returncode}: {done.stderr[:200]}"


def _for_cuda(given: argparse.Namespace) -> int:
    if not given.ready:
        for case in cases(is_small=given.small, for_cuda=True):
            engine = mlirt.compile(case.model, target="cuda", **case.settings)
            assert isinstance(engine, mlirt.Engine)
            make(case.name, engine, case.runs, given.out / case.name)
    if given.export:
        return 0
    rows = [measure_cuda(folder.name, folder) for folder in sorted(given.out.iterdir()) if folder.is_dir()]
    print("\n".join([HEAD, *(row for row, _ in rows)]))
    return 0 if all(is_same for _, is_same in rows) else 1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--cpu", help="the processor of the libraries, such as x86-64-v3")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--export", action="store_true")
    parser.add_argument("--ready", action="store_true")
    given = parser.parse_args()
    if given.device == "cuda":
        return _for_cuda(given)
    print("network   bits   start  create   first    next   besides     weights leaks")
    is_right = True
    for case in cases(is_small=given.small):
        row, fits = measure(case, given.out / case.name, given.threads, given.cpu)
        print(row, flush=True)
        is_right &= fits
    return 0 if is_right else 1


if __name__ == "__main__":
    sys.exit(main())
