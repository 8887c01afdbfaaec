"""Long sums on a CPU are sums of parts: as accurate as PyTorch's, along memory and across it, whatever the lengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import mlirt

NETWORK = """builtin.module {{
  func.func @main(%x: tensor<{shape}xf32> {{trt.name = "x"}}) -> (tensor<{kept}xf32> {{trt.name = "y"}}) {{
    %y = trt.reduce sum %x {{axes = array<i64: {axes}>}} : (tensor<{shape}xf32>) -> tensor<{kept}xf32>
    func.return %y : tensor<{kept}xf32>
  }}
}}
"""


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((1, 16_777_259), (1,)),
        ((300_007, 5), (0,)),
        ((2, 8_209, 31, 3), (1, 2)),
    ],
)
def test_a_long_sum_is_rounded_a_few_times(shape: tuple[int, ...], axes: tuple[int, ...], tmp_path: Path) -> None:
    kept = [1 if axis in axes else size for axis, size in enumerate(shape)]
    names = {"shape": "x".join(map(str, shape)), "kept": "x".join(map(str, kept)), "axes": ", ".join(map(str, axes))}
    path = tmp_path / "network.mlir"
    path.write_text(NETWORK.format(**names))
    x = np.maximum(np.random.default_rng(0).standard_normal(shape, np.float32), 0)
    found = mlirt.compile(path, target="cpu").run({"x": x})["y"]
    np.testing.assert_allclose(found, x.sum(axes, np.float64, keepdims=True), rtol=1e-6)
