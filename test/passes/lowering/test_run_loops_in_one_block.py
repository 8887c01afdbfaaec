"""Loops that became one kernel of one block compute what they did, without races; other loops stay."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_control_flow import NESTED, SUM_EVEN, UNTIL_LARGE
from onnx_control_flow import model as from_text
from onnx_models import Array, numbers, run_onnxruntime
from xdsl.dialects.builtin import ModuleOp, StringAttr

from mlirt.codegen.numba_cuda.kernel_source import emit_kernel
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.library_product import LibraryProductOp
from mlirt.dialects.plan.control import WhileOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.lib.tactics.registry import TACTIC
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases

SHRINKING = """
<ir_version: 8, opset_import: ["" : 17]>
shrinking (float[LENGTH] x, float limit) => (float[LENGTH] y) {
   go = Constant <value = bool {1}> ()
   y = Loop (, go, x) <body: graph = body (int64 i, bool go_in, float[LENGTH] a) => (bool go_out, float[LENGTH] b) {
      near = Constant <value = float {0.75}> ()
      b = Mul (a, near)
      largest = ReduceMax <keepdims: int = 0> (b)
      go_out = Less (limit, largest)
   }>
}
"""


def lowered(text: str) -> tuple[ModuleOp, RtContext]:
    context = RtContext()
    module = import_model(from_text(text), context)
    run_phases(module, context, options=PipelineOptions("cuda"))
    return module, context


def loops(module: ModuleOp) -> list[FuncOp]:
    return [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("loop_")]


POWERS = """
<ir_version: 8, opset_import: ["" : 17]>
powers (float[3, 3] x, float limit) => (float[3, 3] y) {
   go = Constant <value = bool {1}> ()
   y = Loop (, go, x) <body: graph = body (int64 i, bool go_in, float[3, 3] a) => (bool go_out, float[3, 3] b) {
      b = MatMul (a, x)
      largest = ReduceMax <keepdims: int = 0> (b)
      go_out = Less (largest, limit)
   }>
}
"""


CASES: list[tuple[str, dict[str, Array]]] = [
    *((SUM_EVEN, {"items": numbers(5), "count": np.array(count)}) for count in (5, 0)),
    (UNTIL_LARGE, {"x": np.array([0.5, 1.0, 0.25], np.float32), "limit": np.array(9.0, np.float32)}),
    (NESTED, {"x": numbers(2), "outer": np.array(2), "inner": np.array(3)}),
    *(
        (SHRINKING.replace("LENGTH", str(n)), {"x": numbers(n), "limit": np.array(0.3, np.float32)})
        for n in (1, 33, 256, 450)
    ),
]


@pytest.mark.parametrize(("text", "feeds"), CASES)
def test_results(text: str, feeds: dict[str, Array]) -> None:
    module, context = lowered(text)
    assert len(loops(module)) == 1
    results = run_plan(module, context, feeds).values()
    for got, want in zip(results, run_onnxruntime(from_text(text), feeds), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_large_bodies_stay_launches() -> None:
    module, _ = lowered(SHRINKING.replace("LENGTH", "100000"))
    assert not loops(module)
    assert any(isinstance(op, WhileOp) for op in module.walk())


def test_the_text_of_a_loop_reads_its_condition_behind_a_barrier() -> None:
    module, _ = lowered(SHRINKING.replace("LENGTH", "256"))
    lines = [line.strip() for line in emit_kernel(loops(module)[0]).text.splitlines()]
    start = lines.index("while True:")
    assert lines[start + 2] == "barrier()"
    assert lines[start + 3].startswith("if not ")
    assert lines[start + 4] == "break"


def test_a_loop_that_calls_a_library_stays_one() -> None:
    context = RtContext()
    module = import_model(from_text(POWERS), context)
    options = PipelineOptions("cuda", machine=TargetMachine(features=["cublas_lt"]))
    run_phases(module, context, last="layout", options=options)
    for op in module.walk():
        if isinstance(op, MatmulOp):
            op.attributes[TACTIC] = StringAttr("cuda_cublas_lt:first")
    run_phases(module, context, first="lowering", options=options)
    assert loops(module) == []
    assert any(isinstance(op, LibraryProductOp) for op in module.ops)
    feeds = {"x": np.array([[1, 2, 0], [0, 1, 1], [2, 0, 1]], np.float32), "limit": np.array(50, np.float32)}
    (found,) = run_plan(module, context, feeds).values()
    (want,) = run_onnxruntime(from_text(POWERS), feeds)
    np.testing.assert_allclose(found, want, rtol=1e-6)
