"""Convolutions that pool their own results on a GPU: the loops that take all, on the SIMT interpreter."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads, kernel_names


@pytest.mark.parametrize(("kind", "window"), [("max", "2, 2"), ("average", "1, 3")])
@pytest.mark.parametrize("element", ["f32", "f16"])
def test_pooled_convolution(kind: str, window: str, element: str) -> None:
    shape = {"2, 2": "1x4x3x2", "1, 3": "1x4x7x1"}[window]
    narrow = "%h = arith.truncf %s : f32 to f16" if element == "f16" else ""
    text = f"""
    func.func @main(%x: tensor<1x2x7x5x{element}> {{trt.name = "x"}}, %b: tensor<4xf32> {{trt.name = "b"}},
        %r: tensor<1x4x7x5xf32> {{trt.name = "r"}})
        -> (tensor<{shape}x{element}> {{trt.name = "y"}}) {{
      %w = trt.constant {{value = dense<0.5> : tensor<4x2x3x3x{element}>}} : tensor<4x2x3x3x{element}>
      %y = fused.convolution %x, %w, %b, %r {{stride = array<i64: 1, 1>, dilation = array<i64: 1, 1>,
          pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>, pooling = #fused.pooling<{kind} [{window}]>,
          access = [#fused.access<["d1"]>, #fused.access<["d0", "d1", "d2", "d3"]>]}}
          : (tensor<1x2x7x5x{element}>, tensor<4x2x3x3x{element}>, tensor<4xf32>, tensor<1x4x7x5xf32>)
          -> tensor<{shape}x{element}> {{
      ^bb0(%acc: f32, %bias: f32, %residual: f32):
        %t = arith.addf %acc, %bias : f32
        %s = arith.addf %t, %residual : f32
        {narrow}
        fused.yield {"%h" if narrow else "%s"} : {element}
      }}
      func.return %y : tensor<{shape}x{element}>
    }}"""
    rng = np.random.default_rng(0)
    dtype = np.float16 if element == "f16" else np.float32
    x, b, r = (rng.standard_normal(shape) for shape in ((1, 2, 7, 5), (4,), (1, 4, 7, 5)))
    feeds = {"x": x.astype(dtype), "b": b.astype(np.float32), "r": r.astype(np.float32)}
    lowered = check_on_threads(text, feeds, tolerance=2e-3 if narrow else 1e-5)
    assert kernel_names(lowered) == ["convolution"]
