"""Inputs whose shapes do not fit together are refused by a plan, although each has a name of its own for its length."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import lower, parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.errors import InvalidInputError
from mlirt.passes.pipeline import run_passes

NETWORK = """
func.func @main(%x: tensor<?x3xf32, #trt.dims<["n", "3"]>>, %y: tensor<?x3xf32, #trt.dims<["m", "3"]>>)
    -> tensor<?x6xf32, #trt.dims<["n", "6"]>> {
  %z = trt.concatenation %x, %y {axis = 1 : i64} :
      (tensor<?x3xf32, #trt.dims<["n", "3"]>>, tensor<?x3xf32, #trt.dims<["m", "3"]>>)
      -> tensor<?x6xf32, #trt.dims<["n", "6"]>>
  func.return %z : tensor<?x6xf32, #trt.dims<["n", "6"]>>
}
"""


def test_a_plan_refuses_inputs_of_different_lengths() -> None:
    module, context = parse_module(NETWORK)
    run_passes(module, context, "unify-dimensions,convert-trt-to-fused")
    plan = lower(module, context)
    long, short = np.ones((4, 3), np.float32), np.ones((2, 3), np.float32)
    (result,) = run_plan(plan, context, {"x": long, "y": long}).values()
    np.testing.assert_array_equal(result, np.ones((4, 6)))
    with pytest.raises(InvalidInputError, match=r"input 'y': expected length n = 4 on axis 0 of \[n, 3\]"):
        run_plan(plan, context, {"x": long, "y": short})


HALVED = """
func.func @main(%x: tensor<?xf32, #trt.dims<["n"]>>, %y: tensor<?xf32, #trt.dims<["m"]>>)
    -> tensor<?xf32, #trt.dims<["n // 2"]>> {
  %a = trt.slice %x {start = #trt.dims<["0"]>, size = #trt.dims<["n // 2"]>, stride = array<i64: 1>} :
      (tensor<?xf32, #trt.dims<["n"]>>) -> tensor<?xf32, #trt.dims<["n // 2"]>>
  %b = trt.slice %y {start = #trt.dims<["0"]>, size = #trt.dims<["m // 3"]>, stride = array<i64: 1>} :
      (tensor<?xf32, #trt.dims<["m"]>>) -> tensor<?xf32, #trt.dims<["m // 3"]>>
  %z = trt.elementwise sum %a, %b : (tensor<?xf32, #trt.dims<["n // 2"]>>, tensor<?xf32, #trt.dims<["m // 3"]>>)
      -> tensor<?xf32, #trt.dims<["n // 2"]>>
  func.return %z : tensor<?xf32, #trt.dims<["n // 2"]>>
}
"""


def test_a_plan_refuses_parts_of_different_lengths() -> None:
    """No input's shape is wrong by itself: it is formulas of them that differ."""
    module, context = parse_module(HALVED)
    run_passes(module, context, "unify-dimensions,broadcast-operands,require-lengths,convert-trt-to-fused")
    plan = lower(module, context)
    x, y = np.ones(4, np.float32), np.ones(7, np.float32)
    (result,) = run_plan(plan, context, {"x": x, "y": y}).values()
    np.testing.assert_array_equal(result, [2, 2])
    with pytest.raises(InvalidInputError, match=r"layer trt.broadcast: its inputs have the lengths 3 and 2"):
        run_plan(plan, context, {"x": x, "y": np.ones(9, np.float32)})


def test_the_interpreter_refuses_what_a_plan_refuses() -> None:
    """In every form of the network: fused ops know no more than their types, which do not tell the lengths apart."""
    module, context = parse_module(HALVED)
    x, y = np.ones(4, np.float32), np.ones(7, np.float32)
    for passes in ("unify-dimensions,broadcast-operands,require-lengths", "convert-trt-to-fused,fuse-pointwise"):
        run_passes(module, context, passes)
        (result,) = interpret(module, context, {"x": x, "y": y}).values()
        np.testing.assert_array_equal(result, [2, 2])
        (result,) = interpret(module, context, {"x": x, "y": np.ones(3, np.float32)}).values()
        np.testing.assert_array_equal(result, [2, 2])
        with pytest.raises(InvalidInputError, match=r"layer trt.broadcast: its inputs have the lengths 3 and 2"):
            interpret(module, context, {"x": x, "y": np.ones(9, np.float32)})
