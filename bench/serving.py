"""Load tests of rt-serve: what batching gives, what a request costs, what a killed replica does, what overload gets.

    python bench/serving.py batching [--seconds 3]     closed loop: throughput and latency, single requests and batches
    python bench/serving.py overhead                   one caller: milliseconds over `engine.run`
    python bench/serving.py kill [--requests 10000]    two replicas, one killed twice: what is lost, what is wrong
    python bench/serving.py overload [--seconds 3]     open loop: arrivals at rates below and above what can be served
    python bench/serving.py gpus [--seconds 9]         two replicas on two GPUs against one (bench/serving_gpus.py)

The network is dense: x[n, 512], two hidden layers of 1024 (`--hidden`), y[n, 16]. Each answer is compared with the
engine's. Its weights are 6.4 MB; with 2048 hidden numbers 21 MB, which a run of one row reads for that row alone.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import onnx
import serving_gpus
from onnx import TensorProto, helper, numpy_helper
from serving_client import Load, Outcome, Question, ask_alone, ask_at_times, ask_in_turn, run

import mlirt

WIDTH, HIDDEN, CLASSES = 512, 1024, 16
QUESTIONS = 64


def network(hidden: int = HIDDEN) -> onnx.ModelProto:
    """Three products with ReLU between them: at one row the weights' way from memory is most of the time."""
    generator, sizes = np.random.default_rng(0), (WIDTH, hidden, hidden, CLASSES)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    for number, (width, height) in enumerate(pairwise(sizes)):
        w = generator.uniform(-1, 1, (width, height)).astype(np.float32) / np.sqrt(np.float32(width))
        weights.append(numpy_helper.from_array(w, f"w{number}"))
        nodes.append(helper.make_node("MatMul", [f"h{number}" if number else "x", f"w{number}"], [f"a{number}"]))
        if height != CLASSES:
            nodes.append(helper.make_node("Relu", [f"a{number}"], [f"h{number + 1}"]))
    nodes[-1].output[0] = "y"
    graph = helper.make_graph(
        nodes,
        "dense",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", CLASSES])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


class Bench:
    """The plan, and questions whose answers are known."""

    def __init__(self, folder: Path, hidden: int = HIDDEN) -> None:
        self.plan = folder / "dense.plan"
        self.engine = mlirt.compile(network(hidden), "cpu")
        self.engine.save(self.plan)
        x = np.random.default_rng(1).uniform(-1, 1, (QUESTIONS, 1, WIDTH)).astype(np.float32)
        self.inputs = [{"x": one} for one in x]
        self.questions = [Question("dense", one["x"], self.engine.run(one)["y"]) for one in self.inputs]

    def server(self, *flags: str) -> AbstractContextManager[tuple[int, int]]:
        """Port and process of an rt-serve."""
        return served(self.plan, *flags)


@contextmanager
def served(plan: Path, *flags: str) -> Generator[tuple[int, int]]:
    """Port and process of an rt-serve of a plan."""
    command = [sys.executable, "-m", "mlirt.tools.rt_serve", str(plan), "--port=0", *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline().rsplit(":", 1)[1]), process.pid
    finally:
        process.terminate()
        process.wait(60)


def batching(bench: Bench, seconds: float) -> None:
    """By turns, so that both see the same machine."""
    print("closed loop: requests/s, p50, p99 in ms, rows of a batch in the mean")
    kinds = {"single": ("--no-batch",), "batched": ("--batch", "--max-batch=32")}
    with bench.server(*kinds["single"]) as (single, _), bench.server(*kinds["batched"]) as (batched, _):
        ports = {"single": single, "batched": batched}
        for callers in (1, 4, 16, 32):
            found = {kind: Outcome() for kind in kinds}
            for _ in range(5):
                for kind, port in ports.items():
                    load = Load(port, bench.questions, callers)
                    found[kind].add(run(ask_in_turn(load, seconds=seconds / 5)))
            for kind, outcome in found.items():
                print(f"  {callers:3} callers, {kind:8} {outcome}")
            one, other = found["single"], found["batched"]
            print(
                f"  {callers:3} callers: {other.rate / one.rate:.2f} times the throughput, "
                f"p99 {other.percentile(99) / one.percentile(99):.2f} times"
            )
        print(f"  rows of a batch in the mean: {mean_rows(batched):.1f}")


def overhead(bench: Bench) -> None:
    """Medians of one caller: the engine alone, the server in one process, and with a replica."""
    with bench.server() as (port, _), bench.server("--replicas=1") as (replica, _):
        alone: list[float] = []
        paused: list[float] = []
        served: dict[str, Outcome] = {"HTTP": Outcome(), "HTTP and a replica": Outcome()}
        for _ in range(10):
            for _ in range(100):
                begun = time.perf_counter()
                bench.engine.run(bench.inputs[0])
                alone.append(time.perf_counter() - begun)
            for _ in range(100):
                time.sleep(1e-3)  # as long as the rest of a request takes: caches and workers are as they are then
                begun = time.perf_counter()
                bench.engine.run(bench.inputs[0])
                paused.append(time.perf_counter() - begun)
            for kind, where in (("HTTP", port), ("HTTP and a replica", replica)):
                served[kind].add(ask_alone(where, bench.questions))
    base, calm = float(np.median(alone)) * 1e3, float(np.median(paused)) * 1e3
    print(f"one caller, medians of 1000: engine.run {base:.3f} ms, with a pause of 1 ms between calls {calm:.3f} ms")
    for kind, outcome in served.items():
        middle = outcome.percentile(50)
        print(f"  {kind}: {middle:.3f} ms, {middle - base:.3f} and {middle - calm:.3f} over them")


def kill(bench: Bench, requests: int) -> None:
    """A replica is killed at a third and at two thirds of the requests."""
    with bench.server("--replicas=2") as (port, server):
        killed: list[int] = []

        def at(number: int) -> None:
            if number in (requests // 3, 2 * requests // 3):
                pids = [pid for pid in _children(server) if pid not in killed]
                killed.append(pids[0])
                os.kill(pids[0], signal.SIGKILL)

        outcome = run(ask_in_turn(Load(port, bench.questions, 16), count=requests, before=at))
    print(f"{requests} requests by 16 callers, {len(killed)} replicas killed: {outcome}")
    print(f"  lost {requests - len(outcome.seconds) - outcome.wrong}, wrong {outcome.wrong}")


def overload(bench: Bench, seconds: float) -> None:
    """Arrivals by chance, at multiples of what a closed loop of 32 callers reached."""
    with bench.server("--max-queue=64") as (port, _):
        most = run(ask_in_turn(Load(port, bench.questions, 32), seconds=seconds)).rate
        print(f"open loop, arrivals by chance; a closed loop reached {most:.0f} requests/s")
        for share in (0.3, 0.6, 0.9, 1.5, 3.0):
            times = np.random.default_rng(2).exponential(1 / (share * most), int(share * most * seconds)).cumsum()
            outcome = run(ask_at_times(Load(port, bench.questions, 2_000), times.tolist()))
            print(f"  {share * most:6.0f}/s: {outcome}")


def mean_rows(port: int) -> float:
    """From the metrics."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics") as response:
        text: str = response.read().decode()
    found = dict(re.findall(r'mlirt_batch_rows_(sum|count)\{model="dense"\} (\S+)', text))
    return float(found["sum"]) / float(found["count"])


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()] or [
        int(one) for thread in Path(f"/proc/{pid}/task").iterdir() for one in (thread / "children").read_text().split()
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Run one of the tests, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("batching", "overhead", "kill", "overload", "gpus", "all"))
    parser.add_argument("--target", choices=("cuda", "cpu"), default="cuda", help="of gpus; cpu tries the commands")
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--hidden", type=int, default=HIDDEN, help="numbers of each hidden layer")
    arguments = parser.parse_args(argv)
    tests: dict[str, Callable[[Bench], None]] = {
        "batching": lambda bench: batching(bench, arguments.seconds),
        "overhead": overhead,
        "kill": lambda bench: kill(bench, arguments.requests),
        "overload": lambda bench: overload(bench, arguments.seconds),
    }
    with tempfile.TemporaryDirectory() as folder:
        if arguments.what == "gpus":
            serving_gpus.measure(Path(folder), arguments.target, arguments.seconds, served)
            return
        bench = Bench(Path(folder), arguments.hidden)
        for name, test in tests.items():
            if arguments.what in (name, "all"):
                test(bench)


if __name__ == "__main__":
    main()
