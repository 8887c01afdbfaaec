"""A network in half precision is computed in float32 on either target, unless half precision is permitted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

import mlirt
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.interpreter import entry_function, interpret
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.tensor_types import element_of
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.data_types import numpy_dtype

NAMES = {"f16": "float16", "bf16": "bfloat16"}
ROUNDING = {"f16": 2.0**-11, "bf16": 2.0**-8}
DEPTH = 64


def network(element: str) -> str:
    x, w, y = (f"tensor<{rows}x{columns}x{element}>" for rows, columns in ((4, DEPTH), (DEPTH, DEPTH), (4, DEPTH)))
    return f"""
    func.func @main(%x: {x}, %w: {w}) -> {y} {{
      %a = trt.matrix_multiply %x, %w : ({x}, {w}) -> {y}
      %b = trt.unary exp %a : ({y}) -> {y}
      %c = trt.matrix_multiply %b, %w : ({y}, {w}) -> {y}
      func.return %c : {y}
    }}
    """


def rounding(element: str) -> str:
    """Tensors that are cast to half precision and back, among layers that are fused with the casts."""
    wide, half = "tensor<16xf32>", f"tensor<16x{element}>"
    return f"""
    func.func @main(%x: {wide}) -> {wide} {{
      %a = trt.activation relu %x : ({wide}) -> {wide}
      %h = trt.identity %a : ({wide}) -> {half}
      %r = trt.identity %h : ({half}) -> {wide}
      %y = trt.elementwise sub %r, %a : ({wide}, {wide}) -> {wide}
      func.return %y : {wide}
    }}
    """


def compiled(element: str, target: str, precision: str, text: str = "") -> tuple[ModuleOp, RtContext]:
    ctx = RtContext()
    register_dialects(ctx)
    module = parse_source(ctx, text or network(element), "network.mlir")[0]
    run_phases(module, ctx, last="fusion", options=PipelineOptions(target, precision))
    return module, ctx


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize(
    ("target", "precision", "wide"),
    [
        ("cpu", "fp32", True),
        ("cpu", "fp16", True),
        ("cuda", "fp32", True),
        ("cuda", "tf32", True),
        ("cuda", "int8", True),
        ("cuda", "fp16", False),
        ("cuda", "int8+fp16", False),
    ],
)
def test_products_are_computed_as_permitted(element: str, target: str, precision: str, wide: bool) -> None:
    module, _ = compiled(element, target, precision)
    formats = {str(element_of(op.lhs.type)) for op in module.walk() if isinstance(op, MatmulOp)}
    assert formats == {"f32" if wide else element}


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_inputs_and_outputs_keep_their_type(element: str) -> None:
    kind = entry_function(compiled(element, "cuda", "fp32")[0]).function_type
    assert {str(element_of(one)) for one in (*kind.inputs, *kind.outputs)} == {element}


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_only_the_output_is_rounded(element: str) -> None:
    rng, dtype = np.random.default_rng(0), numpy_dtype(NAMES[element])
    x, w = ((rng.standard_normal(shape) / 8).astype(dtype) for shape in ((4, DEPTH), (DEPTH, DEPTH)))
    module, ctx = compiled(element, "cuda", "fp32")
    (found,) = interpret(module, ctx, {"x": x, "w": w}).values()
    left, right = x.astype(np.float64), w.astype(np.float64)
    exact = np.exp(left @ right) @ right
    np.testing.assert_allclose(found.astype(np.float64), exact, rtol=ROUNDING[element] + 1e-6, atol=1e-6)


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_casts_to_half_precision_and_back_round(element: str, target: str) -> None:
    x = np.array([1e6, 70000, 65519, 65520, 1e-8, 6e-8, 0.1, 1 / 3, *range(2045, 2053)], np.float32)
    module, ctx = compiled(element, target, "fp32", rounding(element))
    (found,) = interpret(module, ctx, {"x": x}).values()
    with np.errstate(over="ignore"):
        want = x.astype(numpy_dtype(NAMES[element])).astype(np.float32) - x
    np.testing.assert_array_equal(found, want)
    assert (found != 0).any()


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_casts_round_in_engines(element: str, tmp_path: Path) -> None:
    path = tmp_path / "network.mlir"
    path.write_text(rounding(element), encoding="utf-8")
    x = np.random.default_rng(0).standard_normal(16).astype(np.float32)
    (found,) = mlirt.compile(path, target="cpu").run({"x": x}).values()
    positive = np.maximum(x, 0)
    np.testing.assert_array_equal(found, positive.astype(numpy_dtype(NAMES[element])).astype(np.float32) - positive)
