"""A normalisation that gives two results in one launch: as it is, and what another reader makes of its elements."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import kernel_names, lower_to_threads
from lowered_network import parse_module

from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import run_passes

_FUSION = (
    "convert-trt-to-fused,eliminate-dead-layers,fuse-pointwise,fuse-convolution-activation,"
    "fuse-convolution-elementwise,fuse-row-reductions,fuse-row-elementwise,fuse-row-results"
)


def layers(shape: tuple[int, ...], axes: tuple[int, ...], element: str, second: str) -> str:
    """`y = x / (mean of x * x + 1)` along axes, and `z`, which a further layer computes of y."""
    row = tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    x, m, q = (
        f"tensor<{''.join(f'{size}x' for size in of)}{one}>"
        for of, one in ((shape, element), (row, element), (shape, "i8"))
    )
    z, scalar = (q, f"tensor<{element}>") if second == "int8" else (x, "")
    ones = "x".join(["1"] * len(shape))
    further = {
        "relu": f"%z = trt.activation relu %y : ({x}) -> {x}",
        "int8": f"""%s = trt.constant {{value = dense<0.03> : {scalar}}} : {scalar}
      %o = trt.constant {{value = dense<0> : tensor<i8>}} : tensor<i8>
      %z = trt.quantize %y, %s, %o : ({x}, {scalar}, tensor<i8>) -> {q}""",
    }[second]
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({x} {{trt.name = "y"}}, {z} {{trt.name = "z"}}) {{
      %p = trt.elementwise prod %x, %x : ({x}, {x}) -> {x}
      %m = trt.reduce avg %p {{axes = array<i64: {", ".join(map(str, axes))}>, keep_dims = true}} : ({x}) -> {m}
      %one = trt.constant {{value = dense<1.0> : tensor<{ones}x{element}>}} : tensor<{ones}x{element}>
      %t = trt.elementwise sum %m, %one : ({m}, tensor<{ones}x{element}>) -> {m}
      %y = trt.elementwise div %x, %t : ({x}, {m}) -> {x}
      {further}
      func.return %y, %z : {x}, {z}
    }}"""


@pytest.mark.parametrize("target", ["cuda", "cpu"])
@pytest.mark.parametrize("second", ["relu", "int8"])
@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize(
    ("shape", "axes"), [((5, 64), (1,)), ((2, 3, 1000), (2,)), ((5, 7, 13), (2,)), ((2, 6, 5, 3), (1, 2, 3))]
)
def test_both_results(shape: tuple[int, ...], axes: tuple[int, ...], element: str, second: str, target: str) -> None:
    x = np.random.default_rng(0).normal(0, 3, shape).astype(np.float16 if element == "f16" else np.float32)
    x.flat[3] = np.inf if second == "relu" else 1e4
    module, context = parse_module(layers(shape, axes, element, second))
    wanted = interpret(module, context, {"x": x})
    run_passes(module, context, _FUSION)
    (rows,) = [op for op in module.walk() if isinstance(op, NormalizationOp)]
    assert len(rows.results) == 2
    tolerance = 4e-3 if element == "f16" else 1e-5
    if target == "cuda":
        lowered = lower_to_threads(module, context)
    else:
        run_passes(module, context, "convert-fused-to-kernel{target=cpu}")
        lowered = module
    assert kernel_names(lowered) == ["normalization"]
    for name, array in run_plan(lowered, context, {"x": x}).items():
        assert array.dtype == wanted[name].dtype
        bound = 1 if array.dtype == np.int8 else tolerance
        np.testing.assert_allclose(
            array.astype(np.float64), wanted[name].astype(np.float64), rtol=tolerance, atol=bound
        )


def test_a_result_that_nobody_else_reads_needs_no_place() -> None:
    text = layers((5, 64), (1,), "f32", "relu").replace('-> (tensor<5x64xf32> {trt.name = "y"}, ', "-> (")
    text = text.replace("return %y, %z : tensor<5x64xf32>, ", "return %z : ")
    module, context = parse_module(text)
    run_passes(module, context, _FUSION)
    (rows,) = [op for op in module.walk() if isinstance(op, NormalizationOp)]
    assert len(rows.results) == 1
