"""Products whose last tiles and panels are nearly whole are proved to stay inside of their buffers, and run."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from onnx_models import model_of, numbers

import mlirt
from mlirt.runtime.host_cpu import runs_here


@pytest.mark.parametrize(
    ("cpu", "features", "rows", "depth"),
    [
        ("x86-64-v2", ("sse4.2",), 9, 5),
        ("x86-64-v2", ("sse4.2",), 25, 5),
        ("x86-64-v2", ("sse4.2",), 33, 8),
        ("x86-64-v3", ("avx2", "fma"), 17, 5),
        ("x86-64-v3", ("avx2", "fma"), 34, 8),
        ("x86-64-v3", ("avx2", "fma"), 35, 8),
    ],
)
def test_each_matrix_by_another_transposed(cpu: str, features: tuple[str, ...], rows: int, depth: int) -> None:
    """Four of them, so that a worker's share begins within one and ends within another."""
    if not runs_here("x86_64-unknown-linux-gnu", features):
        pytest.skip(f"this machine does not run code for {cpu}")
    shape = (4, rows, depth)
    nodes = [
        helper.make_node("Transpose", ["z"], ["t"], perm=[0, 2, 1]),
        helper.make_node("MatMul", ["x", "t"], ["y"]),
    ]
    model = model_of(nodes, {"x": ("float32", shape), "z": ("float32", shape)}, ["y"])
    feeds = {"x": numbers(*shape), "z": numbers(*shape, seed=1)}
    (got,) = mlirt.compile(model, target="cpu", cpu=cpu).run(feeds).values()
    np.testing.assert_allclose(got, feeds["x"] @ feeds["z"].transpose(0, 2, 1), rtol=1e-5, atol=1e-5)
