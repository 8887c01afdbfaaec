"""One product with 4-bit weights on the CPU against onnxruntime and the float32 product, in turns on one core.

`taskset -c 1 python bench/cpu_packed.py [SIZE ..] [--rows N] [--block N] [--bits N] [--zeros]` prints for each
size K = N the medians in ms, the ratio (onnxruntime's over ours), the bytes of weights read a second, and the bytes of
the plan over those of the model. MLIRT_VECTOR_BITS=256 measures AVX2 (of ours alone).
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper

import mlirt

_TURNS, _RUNS = 7, 30


def _model(node: Any, rows: int, size: int, stored: Mapping[str, Any]) -> Any:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [rows, size]) for name in "xy")
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(a, n) for n, a in stored.items()])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def _packed(given: argparse.Namespace, size: int) -> Any:
    rng, blocks = np.random.default_rng(0), -(-size // given.block)
    stored = {
        "w": rng.integers(0, 256, (size, blocks, given.block * given.bits // 8), dtype=np.uint8),
        "s": rng.uniform(0.01, 0.05, size * blocks).astype(np.float32),
    }
    if given.zeros:
        stored["z"] = rng.integers(0, 256, size * -(-blocks * given.bits // 8), dtype=np.uint8)
    sizes: dict[str, Any] = {"K": size, "N": size, "bits": given.bits, "block_size": given.block}
    node = helper.make_node("MatMulNBits", ["x", *stored], ["y"], name="product", domain="com.microsoft", **sizes)
    return _model(node, given.rows, size, stored)


def _floats(given: argparse.Namespace, size: int) -> Any:
    weights = np.random.default_rng(0).standard_normal((size, size), np.float32)
    return _model(helper.make_node("MatMul", ["x", "w"], ["y"], name="product"), given.rows, size, {"w": weights})


def _times(runs: Mapping[str, Callable[[], object]]) -> dict[str, float]:
    """The median milliseconds of each, all measured in turns."""
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(_TURNS):
        for name, run in runs.items():
            run()
            for _ in range(_RUNS):
                started = time.perf_counter()
                run()
                found[name].append((time.perf_counter() - started) * 1e3)
    return {name: median(times) for name, times in found.items()}


def _measure(given: argparse.Namespace, size: int) -> str:
    model, x = _packed(given, size), np.random.default_rng(1).standard_normal((given.rows, size), np.float32)
    engine, floats = (mlirt.compile(one, target="cpu", threads=1) for one in (model, _floats(given, size)))
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    content = model.SerializeToString()
    session = ort.InferenceSession(content, options)
    with TemporaryDirectory() as folder:
        engine.save(path := Path(folder) / "packed.plan")
        share = path.stat().st_size / len(content)
    ms = _times(
        {
            "ours": lambda: engine.run({"x": x}),
            "onnxruntime": lambda: session.run(None, {"x": x}),
            "float32": lambda: floats.run({"x": x}),
        }
    )
    told = "  ".join(f"{name} {value:.3f} ms" for name, value in ms.items())
    ratio, speed = ms["onnxruntime"] / ms["ours"], len(content) / ms["ours"] / 1e6
    return f"{size}: {told}  ratio {ratio:.2f}  {speed:.1f} GB/s  plan/model {share:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sizes", type=int, nargs="*", default=[2048, 4096])
    parser.add_argument("--rows", type=int, default=1)
    parser.add_argument("--block", type=int, default=32)
    parser.add_argument("--bits", type=int, default=4)
    parser.add_argument("--zeros", action="store_true", help="a zero point for each block")
    given = parser.parse_args()
    for size in given.sizes:
        print(_measure(given, size), flush=True)


if __name__ == "__main__":
    main()
