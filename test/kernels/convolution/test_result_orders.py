"""Tiles of products write results whose channels lie innermost as neighbours, whole and in parts."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads

SIZES = '["2", "24", "7", "9"]'


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("choice", ["32x32p1", "64x64p2"])
@pytest.mark.parametrize("order", ["[0, 1, 2, 3]", "[0, 2, 3, 1]", "[0, 3, 2, 1]"])
def test_convolutions_of_plain_images(order: str, choice: str, element: str) -> None:
    x, w, y = (f"tensor<{sizes}x{element}>" for sizes in ("2x12x7x9", "24x12x3x3", "2x24x7x9"))
    transposed = f"tensor<2x24x7x9x{element}, #trt.dims<{SIZES}, order = {order}>>"
    narrow = "%o = arith.truncf %s : f32 to f16" if element == "f16" else "%o = arith.addf %s, %z : f32"
    weights = np.random.default_rng(1).integers(-4, 5, (24, 12, 3, 3)).tolist()
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %b: tensor<24xf32> {{trt.name = "b"}}) -> ({y} {{trt.name = "y"}}) {{
      %w = trt.constant {{value = dense<{weights}> : {w}}} : {w}
      %c = fused.convolution %x, %w, %b {{stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>,
          pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, access = [#fused.access<["d1"]>],
          fused.tactic = "cuda_implicit_gemm:{choice}"}}
          : ({x}, {w}, tensor<24xf32>) -> {transposed} {{
      ^bb0(%acc: f32, %d: f32):
        %z = arith.constant 0.0 : f32
        %s = arith.addf %acc, %d : f32
        {narrow}
        fused.yield %o : {element}
      }}
      %y = fused.reformat %c : ({transposed}) -> {y}
      func.return %y : {y}
    }}"""
    rng = np.random.default_rng(0)
    x_values = rng.integers(-9, 10, (2, 12, 7, 9)).astype(np.float16 if element == "f16" else np.float32)
    inputs = {"x": x_values, "b": rng.standard_normal(24).astype(np.float32)}
    check_on_threads(text, inputs, tolerance=1e-3)
