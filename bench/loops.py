"""What an iteration of a loop costs: many iterations against one, on a CPU or a GPU, with onnxruntime's CPU provider as
peer.

    python bench/loops.py [--target cpu|cuda] [--iterations 1000] [--rounds 7]

The loops are ONNX models: one that counts and multiplies, one whose end depends on its numbers, one with a branch in
it, and one whose body works on a million numbers. Prints microseconds an iteration (the difference of two medians over
the iterations) and the peer's over ours.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from cpu_peer import cpu_session

import mlirt

_HEAD = '<ir_version: 8, opset_import: ["": 17]>'
_COUNTING = f"""{_HEAD} counting (float[LENGTH] x, float limit) => (float[LENGTH] y) {{
  go = Constant<value = bool {{1}}>() zero = Constant<value = float {{0.0}}>()
  n, y = Loop("", go, zero, x)<
    body = b (int64 i, bool c, float k, float[LENGTH] a) => (bool d, float m, float[LENGTH] e) {{
      one = Constant<value = float {{1.0}}>() near = Constant<value = float {{0.999}}>()
      e = Mul(a, near) m = Add(k, one) d = Less(m, limit)
    }}>
}}"""
_SHRINKING = f"""{_HEAD} shrinking (float[256] x, float limit) => (float[256] y) {{
  go = Constant<value = bool {{1}}>()
  y = Loop("", go, x)<body = b (int64 i, bool c, float[256] a) => (bool d, float[256] e) {{
    near = Constant<value = float {{0.999}}>() e = Mul(a, near) m = ReduceMax<keepdims = 0>(e) d = Less(limit, m)
  }}>
}}"""
_SUM_EVEN = f"""{_HEAD} sum_even (float[n] items, int64 count) => (float total) {{
  zero = Constant<value = float {{0.0}}>()
  total = Loop(count, "", zero)<body = b (int64 i, bool c, float s) => (bool d, float t) {{
    d = Identity(c) two = Constant<value = int64 {{2}}>() none = Constant<value = int64 {{0}}>()
    half = Mod(i, two) even = Equal(half, none)
    t = If(even)<then_branch = p () => (float u) {{ item = Gather(items, i) u = Add(s, item) }},
                 else_branch = q () => (float v) {{ v = Identity(s) }}>
  }}>
}}"""


@dataclass(frozen=True)
class Case:
    """A loop, and its inputs for a trip count."""

    name: str
    text: str
    feeds: Callable[[int], dict[str, Any]]


def cases(most: int) -> Iterator[Case]:
    def counting(length: int) -> Callable[[int], dict[str, Any]]:
        x = np.ones(length, np.float32)
        return lambda iterations: {"x": x, "limit": np.array(iterations, np.float32)}

    def shrinking(iterations: int) -> dict[str, Any]:
        return {"x": np.ones(256, np.float32), "limit": np.array(0.999 ** (iterations - 0.5), np.float32)}

    items = np.arange(most + 1, dtype=np.float32)
    yield Case("counts", _COUNTING.replace("LENGTH", "256"), counting(256))
    yield Case("ends by its numbers", _SHRINKING, shrinking)
    yield Case("a branch in a loop", _SUM_EVEN, lambda iterations: {"items": items, "count": np.array(iterations)})
    yield Case("a million numbers", _COUNTING.replace("LENGTH", str(1 << 20)), counting(1 << 20))


def median(run: Callable[[], object], rounds: int) -> float:
    run()
    times: list[float] = []
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def microseconds(run: Callable[[dict[str, Any]], object], case: Case, iterations: int, rounds: int) -> float:
    many, one = case.feeds(iterations + 1), case.feeds(1)
    return (median(lambda: run(many), rounds) - median(lambda: run(one), rounds)) / iterations * 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--iterations", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    arguments = parser.parse_args()
    print(f"{'loop':24} {'us an iteration':>10} {'peer':>10} {'ratio':>6}")
    for case in cases(arguments.iterations + 1):
        model = onnx.parser.parse_model(case.text)
        engine = mlirt.compile(model, target=arguments.target)
        peer = cpu_session(model)
        ours = microseconds(engine.run, case, arguments.iterations, arguments.rounds)
        theirs = microseconds(
            lambda feeds, peer=peer: peer.run(None, feeds), case, arguments.iterations, arguments.rounds
        )
        print(f"{case.name:24} {ours:10.2f} {theirs:10.2f} {theirs / ours:6.2f}", flush=True)


if __name__ == "__main__":
    main()
