"""Products by warpgroups of float32 with 10 bits of mantissa, and of 8-bit integers with an epilogue that quantises."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contractions import Problem, channels_last_text, product_text
from lowered_network import parse_module
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import PipelineOptions, check_ir, run_passes, run_phases

Array = np.ndarray[Any, np.dtype[Any]]
_TF32 = 1e-3  # relative to the largest result: the factors lose 13 of 23 bits


def run(text: str, inputs: dict[str, Array], features: str = "") -> tuple[Array, Array, ModuleOp]:
    """The result of the kernels, that of the reference, and the lowered module."""
    module, context = parse_module(text)
    want = interpret(module, context, inputs)["y"]
    run_passes(module, context, f"convert-fused-to-kernel{{target=cuda{features}}},map-parallel-to-threads")
    check_ir(module)
    return run_plan(module, context, inputs)["y"], want, module


def forced(text: str, choice: str) -> str:
    for first in ("transpose_lhs", "stride"):
        text = text.replace(f"{{{first}", f'{{fused.tactic = "cuda_wgmma:{choice}", {first}', 1)
    return text


@pytest.mark.parametrize("choice", ["64x64s3", "128x64s3", "64x64s2c2"])
def test_float32_where_the_target_may_round(choice: str) -> None:
    rng = np.random.default_rng(0)
    shapes = {"x": (72, 136), "w": (88, 136), "b": (88,)}
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    text = product_text(shapes["x"], shapes["w"], (72, 88), "f32", (False, True))
    got, want, module = run(forced(text, choice), inputs, " features=tf32")
    assert "kernel.warpgroup_mma tf32" in str(module)
    np.testing.assert_allclose(got, want, rtol=0, atol=_TF32 * np.abs(want).max())
    assert "warpgroup_mma" not in str(run(text, inputs)[2])


def test_float32_convolutions_where_the_target_may_round() -> None:
    problem = Problem((2, 40, 9, 7), (40, 40, 3, 3), pre=(1,), post=(1,), residual=True)
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    got, want, _ = run(forced(channels_last_text(problem, "f32"), "64x64s3"), inputs, " features=tf32")
    np.testing.assert_allclose(got, want, rtol=0, atol=_TF32 * np.abs(want).max())


QUANTISED = """
func.func @main(%x: tensor<72x272xi8> {trt.name = "x"}, %w: tensor<88x272xi8> {trt.name = "w"},
    %b: tensor<88xf32> {trt.name = "b"}) -> (tensor<72x88xi8> {trt.name = "y"}) {
  %y = fused.matmul %x, %w, %b {transpose_lhs = false, transpose_rhs = true, access = [#fused.access<["d1"]>]} :
      (tensor<72x272xi8>, tensor<88x272xi8>, tensor<88xf32>) -> tensor<72x88xi8> {
  ^bb0(%acc: i32, %0: f32):
    %sum = arith.sitofp %acc : i32 to f32
    %scale = arith.constant 0.001 : f32
    %scaled = arith.mulf %sum, %scale : f32
    %moved = arith.addf %scaled, %0 : f32
    %whole = math.roundeven %moved : f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %above = arith.maximumf %whole, %low : f32
    %inside = arith.minimumf %above, %high : f32
    %q = arith.fptosi %inside : f32 to i8
    fused.yield %q : i8
  }
  func.return %y : tensor<72x88xi8>
}
"""


@pytest.mark.parametrize("choice", ["64x64s3", "128x64s3", "64x64s2c2"])
def test_bytes(choice: str) -> None:
    rng = np.random.default_rng(0)
    inputs: dict[str, Array] = {
        **{name: rng.integers(-128, 128, (rows, 272)).astype(np.int8) for name, rows in (("x", 72), ("w", 88))},
        "b": rng.standard_normal(88).astype(np.float32),
    }
    got, want, module = run(forced(QUANTISED, choice), inputs)
    assert "kernel.warpgroup_mma s8" in str(module)
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("precision", ["fp32", "tf32"])
def test_the_precision_of_a_build_lets_float32_be_rounded(precision: str) -> None:
    module, context = parse_module("""
    func.func @main(%x: tensor<256x512xf32> {trt.name = "x"}) -> (tensor<256x512xf32> {trt.name = "y"}) {
      %w = trt.constant {value = dense<1.0> : tensor<512x512xf32>} : tensor<512x512xf32>
      %y = trt.matrix_multiply %x, %w : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>
      func.return %y : tensor<256x512xf32>
    }""")
    run_phases(module, context, options=PipelineOptions("cuda", precision))
    assert ("kernel.warpgroup_mma tf32" in str(module)) == (precision == "tf32")
