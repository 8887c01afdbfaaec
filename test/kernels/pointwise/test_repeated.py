"""Pointwise ops whose operands a run may repeat: two launches where lanes depend on it, of which one has iterations."""

from __future__ import annotations

import numpy as np
import pytest
from lowered_network import parse_module
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.fused.access import broadcast_access, repeated_lengths, unrepeated
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.symbolic import coefficient_of, evaluate, sym
from mlirt.passes.phases import pipeline_for
from mlirt.passes.pipeline import run_passes

NETWORK = """
func.func @main(%x: tensor<?x?xf32, #trt.dims<["n", "k"]>>,
    %y: tensor<?x?xf32, #trt.dims<["{rows}", "{columns}"]>>)
    -> tensor<?x?xf32, #trt.dims<["{out}", "{wide}"]>> {{
  %a = trt.elementwise sub %x, %y : (tensor<?x?xf32, #trt.dims<["n", "k"]>>,
      tensor<?x?xf32, #trt.dims<["{rows}", "{columns}"]>>) -> tensor<?x?xf32, #trt.dims<["{out}", "{wide}"]>>
  func.return %a : tensor<?x?xf32, #trt.dims<["{out}", "{wide}"]>>
}}
"""


def launches(rows: str, columns: str, out: str, wide: str, target: str = "cpu") -> int:
    """How many launches the difference of [n, k] and [rows, columns] has, after a run for each pair of shapes."""
    text = NETWORK.format(rows=rows, columns=columns, out=out, wide=wide)
    module, ctx = parse_module(text)
    for _, specs in pipeline_for(target):
        run_passes(module, ctx, ",".join(specs))
    for left, right in (((3, 20), (3, 20)), ((1, 20), (3, 1)), ((3, 1), (1, 20)), ((0, 5), (1, 5)), ((1, 1), (1, 1))):
        if (rows == "n" and left[0] != right[0]) or (columns == "k" and left[1] != right[1]):
            continue
        x, y = np.random.default_rng(0).normal(size=left), np.random.default_rng(1).normal(size=right)
        x, y = x.astype(np.float32), y.astype(np.float32)
        (found,) = run_plan(module, ctx, {"x": x, "y": y}).values()
        np.testing.assert_array_equal(found, x - y)
    return _count(module)


def _count(module: ModuleOp) -> int:
    return sum(isinstance(op, LaunchOp) for op in module.walk())


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_a_last_axis_that_may_be_repeated(target: str) -> None:
    assert launches("m", "l", "broadcast(m, n)", "broadcast(k, l)", target) == 2
    assert launches("n", "l", "n", "broadcast(k, l)", target) == 2


@pytest.mark.parametrize("target", ["cpu", "cuda"])
def test_other_axes_are_a_step_of_the_host(target: str) -> None:
    assert launches("m", "k", "broadcast(m, n)", "k", target) == 1
    assert launches("n", "k", "n", "k", target) == 1


def test_factors_are_found_again() -> None:
    (index, _) = broadcast_access([sym("n") + 1, 3], [sym("m"), 3]).indices()
    factor = coefficient_of(index, "d0")
    assert repeated_lengths(4 * factor) == [sym("n") + 1]
    assert unrepeated(4 * factor + sym("h")) == sym("h") + 4
    assert [evaluate(factor, {"n": n}) for n in (0, 1, 5)] == [0, 1, 1]
    assert repeated_lengths(sym("n") // 2 + 3) == []
