"""Small networks of fused ops of every kind, lowered for an architecture of GPUs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from attentions import Attention
from contractions import PROBLEMS, convolution_text, product_text
from lowered_network import Array, parse_module
from quantized_contractions import quantized_product_text
from xdsl.dialects.builtin import ModuleOp

from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.codegen.numba_cuda.kernel_text import KernelSource
from mlirt.dialects.context import RtContext
from mlirt.dialects.gpu_architectures import gpu_architecture
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import run_passes

_RNN = Path(__file__).parents[1] / "kernels" / "rnn" / "cuda_one_block.mlir"
_TILES = "pointwise, 16-byte pixels"
_SOFTMAX = """
func.func @main(%x: tensor<3x700xf32>) -> tensor<3x700xf32> {
  %y = fused.softmax %x {axis = 1 : i64} : (tensor<3x700xf32>) -> tensor<3x700xf32>
  func.return %y : tensor<3x700xf32>
}"""
_NORMALIZATION = """
func.func @main(%x: tensor<64x96xf16>) -> tensor<64x96xf16> {
  %y = fused.normalization %x {access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>,
      kinds = [#fused<reduction_kind max>]} : (tensor<64x96xf16>) -> tensor<64x96xf16> {
  ^bb0(%0: f16, %1: f32):
    %2 = arith.extf %0 : f16 to f32
    %3 = arith.divf %2, %1 : f32
    %4 = arith.truncf %3 : f32 to f16
    fused.yield %4 : f16
  } {
  ^bb0(%5: f16):
    %6 = arith.extf %5 : f16 to f32
    fused.yield %6 : f32
  } {
  ^bb0(%7: f32, %8: f16):
    fused.yield %7 : f32
  }
  func.return %y : tensor<64x96xf16>
}"""
_REDUCTION = """
func.func @main(%x: tensor<16x900xbf16>) -> tensor<16xf32> {
  %y = fused.reduction add(%x) {access = [#fused.access<["d0", "d1"]>], reduced = #trt.dims<["900"]>} :
      (tensor<16x900xbf16>) -> tensor<16xf32> {
  ^bb0(%0: bf16):
    %1 = arith.extf %0 : bf16 to f32
    fused.yield %1 : f32
  } {
  ^bb0(%2: f32):
    fused.yield %2 : f32
  }
  func.return %y : tensor<16xf32>
}"""
_POOLING = """
func.func @main(%x: tensor<2x16x17x17xf16>) -> tensor<2x16x8x8xf16> {
  %y = fused.window max %x {window = array<i64: 3, 3>, stride = array<i64: 2, 2>, dilation = array<i64: 1, 1>,
      pre_padding = #trt.dims<["0", "0"]>, post_padding = #trt.dims<["0", "0"]>} :
      (tensor<2x16x17x17xf16>) -> tensor<2x16x8x8xf16> {
  ^bb0(%0: f16):
    fused.yield %0 : f16
  }
  func.return %y : tensor<2x16x8x8xf16>
}"""
_LONG_ROWS = """
func.func @main(%x: tensor<2x200000xf32>) -> tensor<2x200000xf32> {
  %y = fused.softmax %x {axis = 1 : i64} : (tensor<2x200000xf32>) -> tensor<2x200000xf32>
  func.return %y : tensor<2x200000xf32>
}"""

NETWORKS = {
    "product in half precision": product_text((96, 64), (64, 72), (96, 72), "f16", (False, False)),
    "product in bfloat16": product_text((96, 64), (64, 72), (96, 72), "bf16", (False, False)),
    "product in single precision": product_text((96, 64), (72, 64), (96, 72), "f32", (False, True)),
    "product of int8": quantized_product_text((96, 64), 32),
    "convolution in half precision": convolution_text(PROBLEMS[_TILES], "f16"),
    "attention": Attention(1, 2, 40, 64, 16, 16).text(),
    "reduction": _REDUCTION,
    "softmax": _SOFTMAX,
    "softmax of long rows": _LONG_ROWS,
    "normalization": _NORMALIZATION,
    "pooling": _POOLING,
    "recurrent": _RNN.read_text("utf-8"),
}
"""The text of each by what it is."""


def _lowered(architecture: str, text: str) -> tuple[ModuleOp, RtContext]:
    module, context = parse_module(text)
    device = gpu_architecture(architecture).device
    chosen = f"target=cuda arch={architecture} device={device}"
    passes = f"convert-fused-to-kernel{{{chosen}}},map-parallel-to-threads{{device={device}}}"
    run_passes(module, context, f"{passes},canonicalize-kernels,start-launches-early")
    return module, context


def lowered_for(architecture: str, text: str) -> dict[str, KernelSource]:
    """The kernels of a network by name, for the usual device of an architecture."""
    return sources_of(_lowered(architecture, text)[0])


def on_threads(architecture: str, text: str, inputs: Mapping[str, Array]) -> dict[str, Array]:
    """What the kernels for an architecture give on the SIMT interpreter, which checks them."""
    return run_plan(*_lowered(architecture, text), inputs)


__all__ = ["NETWORKS", "lowered_for", "on_threads"]
