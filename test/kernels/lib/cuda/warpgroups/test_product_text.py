"""The text of the product for Hopper (persistent blocks, TMA, wgmma) with bias and ReLU fits on a page."""

from __future__ import annotations

import pytest
from gpu_kernels import lower_to_threads
from lowered_network import parse_module

from mlirt.codegen.numba_cuda.kernel_source import sources_of

_LINES = 90

_PRODUCT = """func.func @main(%x: tensor<1024x1024xf16>) -> tensor<1024x1024xf16> {
  %w = trt.constant {value = dense<0.5> : tensor<1024x1024xf16>} : tensor<1024x1024xf16>
  %b = trt.constant {value = dense<0.25> : tensor<1024xf16>} : tensor<1024xf16>
  %y = fused.matmul %x, %w, %b {access = [#fused.access<["d1"]>]} :
      (tensor<1024x1024xf16>, tensor<1024x1024xf16>, tensor<1024xf16>) -> tensor<1024x1024xf16> {
  ^bb0(%acc: f32, %bias: f16):
    %0 = arith.extf %bias : f16 to f32
    %1 = arith.addf %acc, %0 : f32
    %2 = arith.constant 0.0 : f32
    %3 = arith.maximumf %1, %2 : f32
    %4 = arith.truncf %3 : f32 to f16
    fused.yield %4 : f16
  }
  func.return %y : tensor<1024x1024xf16>
}
"""


@pytest.mark.parametrize("choice", ["128x128s6", "128x128s4", "128x64s4d", "64x128s9t", "64x64s13t3", "64x64s6"])
def test_the_text_has_a_page(choice: str) -> None:
    module, context = parse_module(_PRODUCT)
    (source,) = sources_of(lower_to_threads(module, context, f"cuda_wgmma:{choice}")).values()
    assert source.text.count("warpgroup_mma(") == 1
    assert len([line for line in source.text.splitlines() if line]) < _LINES
