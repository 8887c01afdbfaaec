"""The largest shares of rows, compiled for the CPU and on the SIMT interpreter, against the meaning of the op."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from compiled_plan import CompiledPlan
from fused_network import Array, Network, context, network_of, t
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirt.dialects.fused.topk import ExtremeKind, Normalization, TopkOp
from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import check_ir, run_passes


def network(sizes: Sequence[int | str], count: int, axis: int, kind: Normalization, element: str) -> ModuleOp:
    found = [count if k == axis else size for k, size in enumerate(sizes)]

    def build(net: Network) -> list[SSAValue]:
        values, places = t(element, *found), t("int64", *found)
        op = TopkOp(ExtremeKind.MAX, net.inputs[0], axis, values, places, normalization=kind)
        net.add(op)
        return list(op.results)

    return network_of([t(element, *sizes)], build)


def scores(*shape: int) -> Array:
    """Some equal ones, some that have no share, and some that would overflow."""
    x = np.round(np.random.default_rng(5).standard_normal(shape) * 8) / 4
    x[0] -= 90
    x[-1] += 100
    x[0, :3] = -np.inf
    return x.astype(np.float32)


@pytest.mark.parametrize("kind", list(Normalization))
@pytest.mark.parametrize(
    ("sizes", "shape", "count", "axis"),
    [
        ((3, 40), (3, 40), 5, 1),
        ((2, 300), (2, 300), 30, 1),
        (("r", "n"), (2, 77), 3, 1),
        ((200, 3), (200, 3), 20, 0),
        ((9, 2), (9, 2), 9, 0),
    ],
)
def test_compiled(
    kind: Normalization, sizes: Sequence[int | str], shape: tuple[int, ...], count: int, axis: int
) -> None:
    x, ctx = scores(*shape), context()
    module = network(sizes, count, axis, kind, "float32")
    want = interpret(module, ctx, {"input0": x})
    run_passes(module, ctx, "convert-fused-to-kernel,map-parallel-to-workers")
    check_ir(module)
    plan = CompiledPlan(module, ctx)
    for workers in (1, 3):
        values, places = plan.run({"input0": x}, workers).values()
        expected, order = want.values()
        np.testing.assert_allclose(values, expected, rtol=2e-5, atol=1e-7)
        np.testing.assert_array_equal(places, order)


@pytest.mark.parametrize("kind", list(Normalization))
@pytest.mark.parametrize(("element", "tolerance"), [("f32", 1e-5), ("f16", 2e-3)])
def test_on_threads(kind: Normalization, element: str, tolerance: float) -> None:
    text = f"""
    func.func @main(%x: tensor<3x20x{element}> {{trt.name = "x"}})
        -> (tensor<3x4x{element}> {{trt.name = "v"}}, tensor<3x4xi64> {{trt.name = "i"}}) {{
      %v, %i = fused.topk max %x {{axis = 1 : i64, normalization = #fused<topk_normalization {kind.value}>}}
          : (tensor<3x20x{element}>) -> (tensor<3x4x{element}>, tensor<3x4xi64>)
      func.return %v, %i : tensor<3x4x{element}>, tensor<3x4xi64>
    }}"""
    x = scores(3, 20)
    check_on_threads(text, {"x": x.astype(np.float16) if element == "f16" else x}, tolerance=tolerance)
