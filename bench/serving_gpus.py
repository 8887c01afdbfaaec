"""Throughput of two replicas on two GPUs against one on one, by turns: in this process, and over HTTP.

The network is y[n, 16] = x[n, 16] through layers of one shared weight with ReLU between them, in half precision: a
request is small, and its run takes some milliseconds of a GPU, so that the GPUs are what limits. Each answer is
compared with the engine's.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from serving_client import Load, Outcome, Question, ask_in_turn, run

import mlirt
from mlirt.serve.replicas.pool import ReplicaPool

WIDTH = 16
ROUNDS = 3
CALLERS_PER_REPLICA = 3


@dataclass(frozen=True)
class Sizes:
    """Of the network and of a request."""

    hidden: int = 4096
    layers: int = 96
    rows: int = 512


SMALL = Sizes(128, 4, 8)
"""For a machine without GPUs, where the commands alone are tried."""


def network(sizes: Sizes) -> onnx.ModelProto:
    """All layers but the first and the last have the same weights, so that the model's file stays small."""
    generator = np.random.default_rng(0)

    def weight(name: str, width: int, height: int) -> onnx.TensorProto:
        bound = np.sqrt(6 / width)
        return numpy_helper.from_array(generator.uniform(-bound, bound, (width, height)).astype(np.float32), name)

    names = ["first", *["inner"] * sizes.layers, "last"]
    nodes: list[onnx.NodeProto] = []
    for number, name in enumerate(names):
        is_last = number == len(names) - 1
        given, made = f"h{number}" if number else "x", "y" if is_last else f"a{number}"
        nodes.append(helper.make_node("MatMul", [given, name], [made]))
        if not is_last:
            nodes.append(helper.make_node("Relu", [f"a{number}"], [f"h{number + 1}"]))
    hidden = sizes.hidden
    weights = [weight("first", WIDTH, hidden), weight("inner", hidden, hidden), weight("last", hidden, WIDTH)]
    tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [sizes.rows, WIDTH]) for name in ("x", "y")]
    graph = helper.make_graph(nodes, "deep", tensors[:1], tensors[1:], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def measure(
    folder: Path, target: str, seconds: float, server: Callable[..., Any], replicas: tuple[int, int] = (1, 2)
) -> dict[str, float]:
    """Print a table; the result is the ratio of throughputs by way. `server(plan, *flags)` runs an rt-serve."""
    sizes = Sizes() if target == "cuda" else SMALL
    plan = folder / "deep.plan"
    engine = mlirt.compile(network(sizes), target, precision="fp16" if target == "cuda" else "fp32")
    engine.save(plan)
    x = np.random.default_rng(1).uniform(-1, 1, (8, sizes.rows, WIDTH)).astype(np.float32)
    y = [engine.run({"x": one})["y"] for one in x]
    begun = time.perf_counter()
    for _ in range(5):
        engine.run({"x": x[0]})
    print(f"{sizes}: engine.run takes {(time.perf_counter() - begun) / 5 * 1e3:.2f} ms", flush=True)
    del engine
    found = {"in process": _in_process(plan, x, y, seconds, replicas)}
    found["HTTP"] = _over_http(plan, x, y, seconds, replicas, server)
    print("way          replicas  GPUs  requests/s  p50 ms  p99 ms  wrong  lost")
    ratios: dict[str, float] = {}
    for way, (outcomes, gpus) in found.items():
        for count, outcome in outcomes.items():
            print(
                f"{way:11} {count:9} {gpus.get(count, '-'):>5} {outcome.rate:11.1f} {outcome.percentile(50):7.2f} "
                f"{outcome.percentile(99):7.2f} {outcome.wrong:6} {outcome.lost:5}"
            )
        ratios[way] = outcomes[replicas[1]].rate / outcomes[replicas[0]].rate
        print(f"{way:11} {replicas[1]} against {replicas[0]}: {ratios[way]:.3f} times the throughput", flush=True)
    return ratios


Found = tuple[dict[int, Outcome], dict[int, str]]
"""What each number of replicas reached, and on how many GPUs they were."""


def _in_process(plan: Path, x: Any, y: list[Any], seconds: float, replicas: tuple[int, int]) -> Found:
    outcomes = {count: Outcome() for count in replicas}
    with ExitStack() as stack:
        pools: dict[int, ReplicaPool] = {}
        for count in replicas:
            pools[count] = ReplicaPool(str(plan), count)
            stack.callback(pools[count].close)
        for pool in pools.values():
            _wait_for(pool)
        gpus = {count: str(len(set(pool.gpus))) for count, pool in pools.items()}
        for _ in range(ROUNDS):
            for count, pool in pools.items():
                outcomes[count].add(_ask_pool(pool, x, y, CALLERS_PER_REPLICA * count, seconds / ROUNDS))
    return outcomes, gpus


def _wait_for(pool: ReplicaPool) -> None:
    until = time.monotonic() + 120
    while len(pool.pids) < pool.count and time.monotonic() < until:
        time.sleep(0.05)
    assert len(pool.pids) == pool.count, "not all replicas have started"


def _ask_pool(pool: ReplicaPool, x: Any, y: list[Any], callers: int, seconds: float) -> Outcome:
    begun = time.perf_counter()

    def call(caller: int) -> Outcome:
        outcome, number = Outcome(), caller
        while time.perf_counter() - begun < seconds:
            asked = time.perf_counter()
            answer = pool.run({"x": x[number % len(x)]})["y"]
            outcome.seconds.append(time.perf_counter() - asked)
            outcome.wrong += not np.array_equal(answer, y[number % len(x)])
            number += 1
        return outcome

    whole = Outcome()
    with ThreadPoolExecutor(callers) as threads:
        for outcome in threads.map(call, range(callers)):
            whole.add(outcome)
    whole.wall = time.perf_counter() - begun
    return whole


def _over_http(
    plan: Path, x: Any, y: list[Any], seconds: float, replicas: tuple[int, int], server: Callable[..., Any]
) -> Found:
    questions = [Question("deep", one, answer) for one, answer in zip(x, y, strict=True)]
    outcomes = {count: Outcome() for count in replicas}
    with ExitStack() as stack:
        ports = {count: stack.enter_context(server(plan, f"--replicas={count}", "--no-batch"))[0] for count in replicas}
        for count, port in ports.items():  # those that start behind the first
            run(ask_in_turn(Load(port, questions, 2 * count), seconds=8.0))
        for _ in range(ROUNDS):
            for count, port in ports.items():
                load = Load(port, questions, CALLERS_PER_REPLICA * count)
                outcomes[count].add(run(ask_in_turn(load, seconds=seconds / ROUNDS)))
    return outcomes, {}
