"""Networks with numbers that half precision cannot hold: converted, they still compute what they did."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.passes.pipeline import run_passes

FUSED = "convert-trt-to-fused,fuse-pointwise,fuse-convolution-activation,fuse-convolution-elementwise"

NORMALIZATION = """
func.func @main(%x: tensor<2x16xf32>) -> (tensor<2x16xf32>) {
  %e = trt.constant {value = dense<1.0e-12> : tensor<1x1xf32>} : tensor<1x1xf32>
  %m = trt.reduce avg %x {axes = array<i64: 1>} : (tensor<2x16xf32>) -> tensor<2x1xf32>
  %c = trt.elementwise sub %x, %m : (tensor<2x16xf32>, tensor<2x1xf32>) -> tensor<2x16xf32>
  %q = trt.elementwise prod %c, %c : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
  %v = trt.reduce avg %q {axes = array<i64: 1>} : (tensor<2x16xf32>) -> tensor<2x1xf32>
  %s = trt.elementwise sum %v, %e : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
  %d = trt.unary sqrt %s : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %y = trt.elementwise div %c, %d : (tensor<2x16xf32>, tensor<2x1xf32>) -> tensor<2x16xf32>
  func.return %y : tensor<2x16xf32>
}
"""

DIVIDED = "%y = trt.elementwise div %c, %d : (tensor<2x16xf32>, tensor<2x1xf32>) -> tensor<2x16xf32>"
MULTIPLIED = """%r = trt.unary recip %d : (tensor<2x1xf32>) -> tensor<2x1xf32>
  %y = trt.elementwise prod %c, %r : (tensor<2x16xf32>, tensor<2x1xf32>) -> tensor<2x16xf32>"""

PEAK = """
func.func @main(%x: tensor<2x16xf32>) -> (tensor<2x16xf32>) {
  %e = trt.constant {value = dense<1.0e-12> : tensor<1x1xf32>} : tensor<1x1xf32>
  %a = trt.unary abs %x : (tensor<2x16xf32>) -> tensor<2x16xf32>
  %m = trt.reduce max %a {axes = array<i64: 1>} : (tensor<2x16xf32>) -> tensor<2x1xf32>
  %d = trt.elementwise sum %m, %e : (tensor<2x1xf32>, tensor<1x1xf32>) -> tensor<2x1xf32>
  %y = trt.elementwise div %x, %d : (tensor<2x16xf32>, tensor<2x1xf32>) -> tensor<2x16xf32>
  func.return %y : tensor<2x16xf32>
}
"""

SPECTROGRAM = """
func.func @main(%x: tensor<2x16xf32>) -> (tensor<2x16xf32>) {
  %w = trt.constant {value = dense<3.0e-7> : tensor<16x16xf32>} : tensor<16x16xf32>
  %a = trt.matrix_multiply %x, %w : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
  %b = trt.elementwise sum %a, %x : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
  %q = trt.elementwise prod %b, %b : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<2x16xf32>
  %l = trt.unary log %q : (tensor<2x16xf32>) -> tensor<2x16xf32>
  func.return %l : tensor<2x16xf32>
}
"""

PRODUCT = """
func.func @main(%x: tensor<2x16xf32>) -> (tensor<2x16xf32>) {
  %w = trt.constant {value = dense<3.3e-8> : tensor<16x16xf32>} : tensor<16x16xf32>
  %y = trt.matrix_multiply %x, %w : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32>
  func.return %y : tensor<2x16xf32>
}
"""


@pytest.mark.parametrize("text", [NORMALIZATION, SPECTROGRAM, PRODUCT])
@pytest.mark.parametrize("magnitude", [1e-3, 1.0, 1e3])
def test_results_are_those_of_float32(text: str, magnitude: float) -> None:
    x = (magnitude * np.random.default_rng(3).normal(size=(2, 16))).astype(np.float32)
    expected, found = _run(text, FUSED, x), _run(text, f"convert-precision{{to=f16}},{FUSED}", x)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=1e-2 * np.abs(expected).max())


@pytest.mark.parametrize("text", [NORMALIZATION, NORMALIZATION.replace(DIVIDED, MULTIPLIED), PEAK])
@pytest.mark.parametrize("row", [0.0, 3.0, -1e-3])
def test_a_row_of_equal_numbers_is_in_range(text: str, row: float) -> None:
    """1 / sqrt(0 + 1e-12) is not; and 1e-12 is zero in half precision."""
    x = np.random.default_rng(3).normal(size=(2, 16)).astype(np.float32)
    x[1] = row
    expected, found = _run(text, FUSED, x), _run(text, f"convert-precision{{to=f16}},{FUSED}", x)
    np.testing.assert_allclose(found, expected, rtol=5e-3, atol=1e-2 * np.abs(expected).max())


def _run(text: str, passes: str, x: np.ndarray) -> np.ndarray:
    ctx = RtContext()
    register_dialects(ctx)
    module, _ = parse_source(ctx, text, "network.mlir")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run_passes(module, ctx, passes)
    (result,) = interpret(module, ctx, {"x": x}).values()
    return result
