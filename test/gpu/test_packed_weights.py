"""Weights of few bits on a GPU: numbers, the same bits every run, and the bandwidth of one row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper
from repeated_runs import differing_runs

from mlirt.builder.compile import compile
from mlirt.dialects.packed_codes import numbers, unpacked

pytestmark = pytest.mark.gpu


def _model(depth: int, count: int, block: int, bits: int, zeros: bool, rows: list[Any], dtype: str) -> Any:
    rng = np.random.default_rng(depth + count)
    blocks = -(-depth // block)
    stored = {
        "w": rng.integers(0, 256, (count, blocks, block * bits // 8), dtype=np.uint8),
        "s": rng.uniform(0.01, 0.05, count * blocks).astype(dtype),
    }
    if zeros:
        stored["z"] = rng.integers(0, 256, count * -(-blocks * bits // 8), dtype=np.uint8)
    sizes: dict[str, Any] = {"K": depth, "N": count, "bits": bits, "block_size": block}
    node = helper.make_node("MatMulNBits", ["x", *stored], ["y"], name="product", domain="com.microsoft", **sizes)
    element = TensorProto.FLOAT16 if dtype == "float16" else TensorProto.FLOAT
    x, y = (helper.make_tensor_value_info(n, element, [*rows, w]) for n, w in (("x", depth), ("y", count)))
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(a, n) for n, a in stored.items()])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    scale = stored["s"].reshape(count, blocks)
    zero = unpacked(stored["z"].reshape(count, -1), bits)[:, :blocks] if zeros else None
    weights = numbers(stored["w"].reshape(count, -1), scale, zero, block, bits, depth)
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), weights


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(
    ("rows", "depth", "count", "block", "bits", "zeros"),
    [
        ([1], 4096, 4096, 32, 4, False),
        ([3], 2048, 1001, 128, 4, True),
        ([8], 290, 67, 16, 4, True),
        ([100], 1024, 512, 64, 4, True),
        (["n"], 512, 130, 32, 8, True),
        ([2], 256, 64, 32, 2, True),
    ],
)
def test_products(
    rows: list[Any], depth: int, count: int, block: int, bits: int, zeros: bool, dtype: str, precision: str
) -> None:
    model, weights = _model(depth, count, block, bits, zeros, rows, dtype)
    engine = compile(model, "cuda", precision, heuristic=True)
    for length in [1, 7, 33] if rows == ["n"] else rows:
        x = np.random.default_rng(0).standard_normal((length, depth)).astype(dtype)
        want = x.astype(np.float64) @ weights.T
        found = engine.run({"x": x})["y"]
        bound = (1e-5 if precision == "fp32" and dtype == "float32" else 4e-3) * np.abs(want).max()
        np.testing.assert_allclose(found.astype(np.float64), want, rtol=0, atol=bound)
        assert differing_runs(engine, {"x": x}) == []
