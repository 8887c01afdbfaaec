"""Loops and conditionals that are not cleanly nested, or lack a part, are refused with the layer's name."""

from __future__ import annotations

import pytest
from lowered_network import parse_module

from mlirt.errors import InvalidModelError
from mlirt.passes.pipeline import run_passes

_LOOP = """
  trt.trip_limit count %n {loop = @steps} : tensor<i32>
  %r = trt.recurrence %x {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.unary neg %r : (tensor<4xf32>) -> tensor<4xf32> loc("negate")
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
"""
_BRANCH = """
  trt.condition %c {conditional = @choice} : tensor<i1>
  %a = trt.if_input %x {conditional = @choice} : (tensor<4xf32>) -> tensor<4xf32>
  %t = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32> loc("negate")
  %u = trt.unary exp %t : (tensor<4xf32>) -> tensor<4xf32>
  %y = trt.if_output %t, %a {conditional = @choice} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
"""
_CROSSED = """
  trt.trip_limit count %n {loop = @one} : tensor<i32>
  trt.trip_limit count %n {loop = @two} : tensor<i32>
  %r = trt.recurrence %x {loop = @one} : (tensor<4xf32>) -> tensor<4xf32>
  %q = trt.recurrence %x {loop = @two} : (tensor<4xf32>) -> tensor<4xf32>
  %s = trt.elementwise sum %r, %q : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("both")
  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
  trt.recurrence_next %q, %s : tensor<4xf32>, tensor<4xf32>
  %y = trt.loop_output last_value %r {loop = @one} : (tensor<4xf32>) -> tensor<4xf32>
"""


def refuse(body: str, result: str = "%y") -> None:
    text = (
        "func.func @main(%x: tensor<4xf32>, %n: tensor<i32>, %c: tensor<i1>) -> tensor<4xf32> {"
        f"{body}\n  func.return {result} : tensor<4xf32>\n}}"
    )
    module, ctx = parse_module(text)
    run_passes(module, ctx, "infer-nesting")


@pytest.mark.parametrize(
    ("body", "result", "message"),
    [
        (
            _LOOP.replace("  trt.trip_limit count %n {loop = @steps} : tensor<i32>\n", ""),
            "%y",
            "@steps has no trip limit",
        ),
        (_LOOP + "  trt.trip_limit count %n {loop = @steps} : tensor<i32>\n", "%y", "2 trip limits of the kind count"),
        (_LOOP.replace("  trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>\n", ""), "%y", "one second input"),
        (_LOOP, "%s", "layer negate is inside of @steps and cannot be an output"),
        (_BRANCH.replace("%t, %a {cond", "%t, %u {cond"), "%y", "layer negate is used by both branches"),
        (
            _BRANCH.replace("  trt.condition %c {conditional = @choice} : tensor<i1>\n", ""),
            "%y",
            "exactly one condition",
        ),
        (_BRANCH, "%t", "layer negate is inside of @choice and cannot be an output"),
        (_CROSSED, "%y", "layer both: .*are not nested"),
    ],
)
def test_refusals(body: str, result: str, message: str) -> None:
    """tensorrt-features.md#7.4, 7.5, 7.7 and 7.13, tensorrt-features.md#8.1, 8.7 and 8.9."""
    with pytest.raises(InvalidModelError, match=message):
        refuse(body, result)
