"""Convolutions that cuDNN is asked for: the meaning of the call on plain memory, and which are left to us."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, channels_last_text, convolution_text
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.library_convolution import LibraryConvolutionOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.errors import CompileError
from mlirt.passes.pipeline import PassError, check_ir, run_passes

PASSES = "convert-fused-to-kernel{target=cuda features=cudnn},map-parallel-to-threads"


def forced(problem: Problem, element: str, *, channels_last: bool = True) -> str:
    text = (channels_last_text if channels_last else convolution_text)(problem, element)
    text = (
        text.replace("%wide0 = arith.addf %0, %zero : f32\n", "").replace("%acc, %wide0 : f32", "%acc, %0 : f32")
        if element == "f32"
        else text
    )
    return text.replace("{stride", '{fused.tactic = "cuda_cudnn:first", stride', 1)


PLAIN = Problem((2, 8, 9, 7), (16, 8, 3, 3), pre=(1,), post=(1,))
PROBLEMS = [
    PLAIN,
    Problem((1, 8, 12, 12), (8, 8, 1, 1), stride=(2,)),
    Problem((2, 4, 11, 13), (6, 4, 3, 5), stride=(2, 1), dilation=(1, 2), pre=(1, 2), post=(1, 2)),
    Problem((2, 8, 6, 6), (8, 2, 3, 3), pre=(1,), post=(1,), groups=4),
]


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("problem", PROBLEMS)
@pytest.mark.parametrize("channels_last", [False, True])
def test_a_convolution_with_bias_and_relu(*, channels_last: bool, problem: Problem, element: str) -> None:
    text = forced(problem, element, channels_last=channels_last)
    noise, shapes = np.random.default_rng(0), {"x": problem.input, "r": problem.output}
    x: dict[str, Any] = {name: noise.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    module, context = parse_module(text)
    (want,) = interpret(module, context, x).values()
    run_passes(module, context, PASSES)
    check_ir(module)
    (call,) = [op for op in module.walk() if isinstance(op, LibraryConvolutionOp)]
    assert (call.is_biased, call.activation.data.value) == (True, "relu")
    assert bool(call.channels_last.value.data) == channels_last
    (found,) = run_plan(module, context, x).values()
    scale = float(np.abs(want.astype(np.float64)).max())
    np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), atol=TOLERANCE[element] * scale)


RECTIFIED = """
func.func @main(%x: tensor<2x4x6x5xf32> {trt.name = "x"}) -> (tensor<2x8x6x5xf32> {trt.name = "y"}) {
  %w = trt.constant {value = dense<0.5> : tensor<8x4x3x3xf32>} : tensor<8x4x3x3xf32>
  %y = fused.convolution %x, %w {fused.tactic = "cuda_cudnn:fourth", stride = array<i64: 1, 1>,
      dilation = array<i64: 1, 1>, pre_padding = array<i64: 1, 1>, post_padding = array<i64: 1, 1>}
      : (tensor<2x4x6x5xf32>, tensor<8x4x3x3xf32>) -> tensor<2x8x6x5xf32> {
  ^bb0(%acc: f32):
    %zero = arith.constant 0.0 : f32
    %top = arith.maximumf %acc, %zero : f32
    fused.yield %top : f32
  }
  func.return %y : tensor<2x8x6x5xf32>
}
"""


def test_a_rectifier_without_a_bias() -> None:
    module, context = parse_module(RECTIFIED)
    x = {"x": np.random.default_rng(0).standard_normal((2, 4, 6, 5)).astype(np.float32)}
    (want,) = interpret(module, context, x).values()
    run_passes(module, context, PASSES)
    (call,) = [op for op in module.walk() if isinstance(op, LibraryConvolutionOp)]
    assert (call.is_biased, call.activation.data.value, call.proposal.value.data) == (False, "relu", 3)
    (found,) = run_plan(module, context, x).values()
    np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("why", "problem"),
    [
        ("a residual", replace(PLAIN, residual=True)),
        ("more padding on one side", replace(PLAIN, post=(0,))),
    ],
)
def test_what_the_library_does_not_have_is_not_asked_of_it(why: str, problem: Problem) -> None:
    module, context = parse_module(forced(problem, "f16"))
    with pytest.raises((PassError, CompileError), match="does not lower"):
        run_passes(module, context, PASSES)


def test_without_the_feature_nothing_is_asked_of_it() -> None:
    module, context = parse_module(forced(PLAIN, "f16"))
    with pytest.raises((PassError, CompileError), match="does not lower"):
        run_passes(module, context, PASSES.replace(" features=cudnn", ""))
