"""Weights of which half precision loses something are counted, and one warning tells of all (tensorrt-features.md#4.2).
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from xdsl.dialects.builtin import f16

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.tensor_types import element_type
from mlirt.passes.pipeline import run_passes
from mlirt.passes.precision.weight_issues import WeightIssues
from mlirt.tools.input_files import new_context


def network(weights: str) -> str:
    kernel = "tensor<2x2x1x1xf32>"
    return f"""func.func @main(%x: tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf32> {{
      %w = trt.constant {{value = dense<{weights}> : {kernel}}} : {kernel}
      %y = trt.convolution %x, %w : (tensor<1x2x4x4xf32>, {kernel}) -> tensor<1x2x4x4xf32>
      func.return %y : tensor<1x2x4x4xf32>
    }}"""


def converted(weights: str) -> None:
    ctx = new_context()
    module, _ = parse_source(ctx, network(weights), "network.mlir")
    run_passes(module, ctx, "convert-precision{to=f16}")


def test_subnormal_weights_are_told_of_4_2() -> None:
    """tensorrt-features.md#4.2."""
    with pytest.warns(UserWarning, match="1 weights are affected by this issue: Detected subnormal FP16 values"):
        converted("[[[[1.0]], [[3.0e-5]]], [[[2.0]], [[1.0]]]]")


def test_weights_that_vanish_are_told_of_4_2() -> None:
    with pytest.warns(UserWarning, match="less than smallest positive FP16 subnormal value, which become 0"):
        converted("[[[[1.0]], [[1.0e-9]]], [[[2.0]], [[1.0]]]]")


def test_one_line_tells_of_a_network_and_names_the_layer_that_loses_most() -> None:
    issues = WeightIssues()
    issues.look(np.array([1.0, 2.0**-15], np.float32), f16, "exact")
    issues.look(np.array([1.0, 2.0**-25 + 2.0**-15], np.float32), f16, "conv1")
    issues.look(np.array([1.0, 1e-9], np.float32), f16, "conv2")
    with pytest.warns(UserWarning, match="weights are affected") as caught:
        issues.warn()
    (text,) = (str(one.message) for one in caught)
    assert "\n" not in text
    assert "- 3 weights are affected" in text
    assert "- 1 weights are affected" in text
    assert f"Most are those of conv1, which lose {2.0**-25:.1g} of their norm by it (rounding alone" in text


@pytest.mark.parametrize("name", ["float16", "bfloat16"])
def test_nothing_is_said_of_others(name: str) -> None:
    issues = WeightIssues()
    issues.look(np.array([0.0, 1.0, 6.2e-5], np.float32), element_type(name), "a")
    issues.look(np.array([1e-5, 1.0], np.float32), element_type("bfloat16"), "b")
    issues.look(np.array([1e-5], np.float32), f16, "c")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        issues.warn()


def test_an_overflow_is_seen_in_the_outputs_4_12() -> None:
    """tensorrt-features.md#4.12: an overflow of half precision leaves infinity in the outputs, which is what --validate
    looks for.
    """
    ctx = new_context()
    module, _ = parse_source(ctx, network("300.0"), "network.mlir")
    given = {"x": np.full((1, 2, 4, 4), 300.0, np.float32)}
    (exact,) = interpret(module, ctx, given).values()
    assert np.isfinite(exact).all()
    run_passes(module, ctx, "convert-precision{to=f16}")
    (found,) = interpret(module, ctx, given).values()
    assert np.isinf(found).all()
