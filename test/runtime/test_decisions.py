"""What the inspector says of branches and loops: one with a check in it is the host's, what is inside may not be."""

from __future__ import annotations

import numpy as np
from lowered_network import parse_module
from onnx_control_flow import NESTED, SUM_EVEN, UNEQUAL_BRANCHES
from onnx_control_flow import model as from_text

import mlirt
from mlirt.builder.build import build_plan
from mlirt.dialects.context import RtContext
from mlirt.frontend.onnx.importer import import_model
from mlirt.runtime.decisions import decisions
from mlirt.runtime.engine import Engine
from mlirt.runtime.plan_file import Plan

# The inner loop checks nothing; the outer one may go past the end of its iterator.
CHECKED = """
func.func @main(%x: tensor<?x100000xf32, #trt.dims<["n", "100000"]>>, %c: tensor<i1>, %n: tensor<i32>, %m: tensor<i32>)
    -> tensor<100000xf32> {
  %z = trt.constant {value = dense<0.0> : tensor<100000xf32>} : tensor<100000xf32>
  trt.trip_limit count %n {loop = @outer} : tensor<i32>
  %e = trt.iterator %x {loop = @outer} : (tensor<?x100000xf32, #trt.dims<["n", "100000"]>>) -> tensor<100000xf32>
  %r = trt.recurrence %z {loop = @outer} : (tensor<100000xf32>) -> tensor<100000xf32>
  trt.trip_limit count %m {loop = @inner} : tensor<i32>
  %q = trt.recurrence %r {loop = @inner} : (tensor<100000xf32>) -> tensor<100000xf32>
  %s = trt.elementwise sum %q, %e : (tensor<100000xf32>, tensor<100000xf32>) -> tensor<100000xf32> loc("add")
  trt.recurrence_next %q, %s : tensor<100000xf32>, tensor<100000xf32>
  %p = trt.loop_output last_value %q {loop = @inner} : (tensor<100000xf32>) -> tensor<100000xf32>
  trt.recurrence_next %r, %p : tensor<100000xf32>, tensor<100000xf32>
  %y = trt.loop_output last_value %r {loop = @outer} : (tensor<100000xf32>) -> tensor<100000xf32>
  func.return %y : tensor<100000xf32>
}
"""


def cuda_plan(text: str) -> Plan:
    if text.lstrip().startswith("func"):
        module, context = parse_module(text)
    else:
        context = RtContext()
        module = import_model(from_text(text), context)
    return build_plan(module, context, "cuda")


def test_the_host_decides_where_it_checks() -> None:
    found = decisions(cuda_plan(CHECKED).manifest, on_device=True)
    assert [(one.kind, one.decided_by) for one in found] == [("loop", "host"), ("loop", "device")]
    assert any("add" in layer for layer in found[1].layers)
    assert set(found[1].layers) <= set(found[0].layers)


def test_the_host_decides_where_the_driver_cannot() -> None:
    assert {one.decided_by for one in decisions(cuda_plan(CHECKED).manifest, on_device=False)} == {"host"}
    branch = decisions(cuda_plan(UNEQUAL_BRANCHES).manifest, on_device=True)
    assert [(one.kind, one.decided_by) for one in branch] == [("branch", "host")]


def test_a_loop_that_is_one_kernel_is_a_layer() -> None:
    plan = cuda_plan(SUM_EVEN)
    assert decisions(plan.manifest, on_device=True) == ()
    assert [layer["family"] for layer in plan.manifest.layers].count("loop") == 1


def test_workers_decide_on_a_cpu() -> None:
    engine = mlirt.compile(from_text(NESTED), target="cpu")
    assert isinstance(engine, Engine)
    assert [(one.kind, one.decided_by) for one in engine.decisions] == [("loop", "device")] * 2
    assert engine.run({"x": np.ones(2, np.float32), "outer": np.array(1), "inner": np.array(1)})
