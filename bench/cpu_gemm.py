"""Matrix products on the CPU against onnxruntime: one-node models, both measured in turns in the same run.

Prints the ratio of times (below 1: faster than onnxruntime), of the best runs and of the median pair. The names of
shapes restrict what is measured: `python bench/cpu_gemm.py 128x768x768 attention`. MLIRT_NUM_THREADS sets the threads
of both; with one thread the ratios are steady on a machine that others use too.
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false
# pyright: reportUnknownParameterType=false, reportArgumentType=false, reportReturnType=false

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from cpu_peer import cpu_session
from onnx import helper, numpy_helper

import mlirt
from mlirt.runtime.host_cpu import thread_count

Array = np.ndarray[Any, np.dtype[Any]]
_ROUNDS, _WINDOW_SECONDS = 10, 0.03
# A pool of threads that has just worked spins for a while, and must not take the cores from whoever runs next.
_REST_SECONDS = 0.06


@dataclass(frozen=True)
class Problem:
    """`[batch.., rows, depth] x [batch.., depth, columns]`."""

    name: str
    rows: int
    columns: int
    depth: int
    batch: tuple[int, ...] = ()
    constant: bool = True
    transposed: bool = False

    def model(self) -> onnx.ModelProto:
        """One MatMul, with a Transpose before its right operand where that is stored the other way round."""
        own = (self.columns, self.depth) if self.transposed else (self.depth, self.columns)
        inputs = [helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [*self.batch, self.rows, self.depth])]
        weights: list[onnx.TensorProto] = []
        if self.constant:
            weights.append(numpy_helper.from_array(self.array(own, 1), "b"))
        else:
            inputs.append(helper.make_tensor_value_info("b", onnx.TensorProto.FLOAT, [*self.batch, *own]))
        nodes: list[onnx.NodeProto] = []
        if self.transposed:
            rank = len(self.batch)
            nodes.append(helper.make_node("Transpose", ["b"], ["bt"], perm=[*range(rank), rank + 1, rank]))
        nodes.append(helper.make_node("MatMul", ["a", "bt" if self.transposed else "b"], ["c"]))
        shape = [*self.batch, self.rows, self.columns]
        outputs = [helper.make_tensor_value_info("c", onnx.TensorProto.FLOAT, shape)]
        graph = helper.make_graph(nodes, "gemm", inputs, outputs, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)

    def inputs(self) -> dict[str, Array]:
        feed = {"a": self.array((*self.batch, self.rows, self.depth), 0)}
        if not self.constant:
            own = (self.columns, self.depth) if self.transposed else (self.depth, self.columns)
            feed["b"] = self.array((*self.batch, *own), 1)
        return feed

    @staticmethod
    def array(shape: tuple[int, ...], seed: int) -> Array:
        return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


PROBLEMS = (
    Problem("128x768x768", 128, 768, 768),
    Problem("128x3072x768", 128, 3072, 768),
    Problem("128x768x3072", 128, 768, 3072),
    Problem("196x256x1024", 196, 256, 1024),
    Problem("3136x64x64", 3136, 64, 64),
    Problem("1x1000x2048", 1, 1000, 2048),
    Problem("1024x1024x1024", 1024, 1024, 1024),
    Problem("attention scores", 128, 128, 64, (1, 12), constant=False, transposed=True),
    Problem("attention values", 128, 64, 128, (1, 12), constant=False),
    Problem("two inputs 512", 512, 512, 512, constant=False),
)


def best_of(run: Callable[[], object]) -> float:
    """Seconds of the fastest run in a short while."""
    times: list[float] = []
    end = time.perf_counter() + _WINDOW_SECONDS
    while time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(problem: Problem) -> None:
    """Run both engines in turns and print their ratio."""
    model, feed = problem.model(), problem.inputs()
    engine = mlirt.compile(model, target="cpu")
    session = cpu_session(model, threads=thread_count())
    (expected,) = session.run(None, feed)
    (found,) = engine.run(feed).values()
    error = float(np.abs(found - expected).max() / np.abs(expected).max())
    ours: list[float] = []
    theirs: list[float] = []
    for _ in range(_ROUNDS):
        time.sleep(_REST_SECONDS)
        theirs.append(best_of(lambda: session.run(None, feed)))
        time.sleep(_REST_SECONDS)
        ours.append(best_of(lambda: engine.run(feed)))
    best, pairs = min(ours) / min(theirs), sorted(a / b for a, b in zip(ours, theirs, strict=True))
    operations = 2 * problem.rows * problem.columns * problem.depth * int(np.prod(problem.batch))
    print(
        f"{problem.name:18s} best {best:5.2f}  median {pairs[len(pairs) // 2]:5.2f}  "
        f"ours {min(ours) * 1e6:8.0f} us {operations / min(ours) / 1e9:5.0f} GF/s  "
        f"onnxruntime {min(theirs) * 1e6:8.0f} us  error {error:.1e}",
        flush=True,
    )


def main() -> None:
    wanted = sys.argv[1:]
    for problem in PROBLEMS:
        if not wanted or any(name in problem.name for name in wanted):
            measure(problem)


if __name__ == "__main__":
    main()
