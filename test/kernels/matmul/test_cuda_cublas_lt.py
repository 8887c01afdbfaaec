"""Products that cuBLASLt is asked for: the meaning of the call on plain memory, and which products are left to us."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, constant, product_text, tensor
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.library_product import LibraryProductOp
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.errors import CompileError
from mlirt.passes.pipeline import PassError, check_ir, run_passes

TACTIC = "convert-fused-to-kernel{target=cuda features=cublas_lt tactic=cuda_cublas_lt}"

SHAPES = [
    ((5, 8), (8, 6), (5, 6), (False, False)),
    ((8, 5), (6, 8), (5, 6), (True, True)),
    ((2, 3, 5, 8), (1, 1, 8, 6), (2, 3, 5, 6), (False, False)),
    ((2, 3, 5, 8), (2, 3, 6, 8), (2, 3, 5, 6), (False, True)),
    ((1, 8, 5), (4, 8, 6), (4, 5, 6), (True, False)),
    ((1, 8), (8, 1), (1, 1), (False, False)),
]


def lowered(text: str) -> tuple[Any, Any, list[LibraryProductOp]]:
    module, context = parse_module(text)
    low = module.clone()
    run_passes(low, context, TACTIC)
    check_ir(low)
    return low, context, [op for op in low.walk() if isinstance(op, LibraryProductOp)]


def agree(text: str, inputs: dict[str, Any], tolerance: float) -> LibraryProductOp:
    low, context, (call,) = lowered(text)
    module, _ = parse_module(text)
    (want,) = interpret(module, context, inputs).values()
    (found,) = run_plan(low, context, inputs).values()
    assert found.dtype == want.dtype
    np.testing.assert_allclose(found.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance)
    return call


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize(("left", "right", "result", "flips"), SHAPES)
def test_a_product_with_bias_and_relu(
    left: tuple[int, ...], right: tuple[int, ...], result: tuple[int, ...], flips: tuple[bool, bool], element: str
) -> None:
    noise = np.random.default_rng(1)
    shapes = {"x": left, "w": right, "b": result[-1:]}
    inputs = {name: noise.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    call = agree(product_text(left, right, result, element, flips), inputs, TOLERANCE[element])
    assert call.is_biased
    assert call.activation.data.value == "relu"


def text_of(epilogue: str, result: str = "f32", element: str = "f32", rows: str = "4") -> str:
    """A product of 4 x 8 and 8 x 8 elements, whose sums go through an epilogue."""
    x, w, y = f"tensor<{rows}x8x{element}>", tensor((8, 8), element), f"tensor<{rows}x8x{result}>"
    accumulators = "i32" if element == "i8" else "f32"
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}, %w: {w} {{trt.name = "w"}}) -> ({y} {{trt.name = "y"}}) {{
      %y = fused.matmul %x, %w : ({x}, {w}) -> {y} {{
      ^bb0(%acc: {accumulators}):
        {epilogue}
      }}
      func.return %y : {y}
    }}"""


GELU = """
    %square = arith.mulf %acc, %acc : f32
    %a = arith.constant 4.471500e-02 : f32
    %scaled = arith.mulf %a, %acc : f32
    %cubic = arith.mulf %square, %scaled : f32
    %b = arith.constant 0.797884583 : f32
    %sum = arith.addf %cubic, %acc : f32
    %inner = arith.mulf %b, %sum : f32
    %t = math.tanh %inner : f32
    %one = arith.constant 1.0 : f32
    %shifted = arith.addf %one, %t : f32
    %half = arith.constant 0.5 : f32
    %halved = arith.mulf %half, %acc : f32
    %y = arith.mulf %halved, %shifted : f32
    fused.yield %y : f32"""


def test_gelu_is_recognised_in_whatever_order_it_is_written() -> None:
    noise = np.random.default_rng(2)
    inputs = {name: noise.standard_normal(shape).astype(np.float32) for name, shape in (("x", (4, 8)), ("w", (8, 8)))}
    assert agree(text_of(GELU), inputs, 1e-5).activation.data.value == "gelu_tanh"


def test_halves_may_give_single_precision() -> None:
    noise = np.random.default_rng(3)
    inputs = {name: noise.standard_normal(shape).astype(np.float16) for name, shape in (("x", (4, 8)), ("w", (8, 8)))}
    agree(text_of("fused.yield %acc : f32", element="f16"), inputs, 1e-5)


def known(element: str, weights: str, accumulators: str) -> str:
    """A product of 4 x 32 with known 32 x 16 elements."""
    x, w, y = f"tensor<4x32x{element}>", f"tensor<32x16x{element}>", f"tensor<4x16x{accumulators}>"
    return f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({y} {{trt.name = "y"}}) {{
      %w = {weights} : {w}
      %y = fused.matmul %x, %w : ({x}, {w}) -> {y} {{
      ^bb0(%acc: {accumulators}):
        fused.yield %acc : {accumulators}
      }}
      func.return %y : {y}
    }}"""


def test_known_int8_is_transposed_because_the_library_reads_along_the_depth() -> None:
    noise = np.random.default_rng(4)
    text = known("i8", constant(noise.integers(-128, 128, (32, 16), np.int8), "i8"), "i32")
    call = agree(text, {"x": noise.integers(-128, 128, (4, 32), np.int8)}, 0)
    assert bool(call.transpose_right.value.data)


@pytest.mark.parametrize(
    ("why", "text"),
    [
        ("another activation", text_of("%y = math.tanh %acc : f32 fused.yield %y : f32")),
        ("bytes that lie across the depth", text_of("fused.yield %acc : i32", "i32", "i8")),
        ("a scale", text_of("%s = arith.constant 2.0 : f32 %y = arith.mulf %acc, %s : f32 fused.yield %y : f32")),
        ("other results", text_of("%y = arith.truncf %acc : f32 to f16 fused.yield %y : f16", "f16")),
    ],
)
def test_what_the_library_does_not_have_is_not_asked_of_it(why: str, text: str) -> None:
    module, context = parse_module(text)
    with pytest.raises((PassError, CompileError), match="no tactic lowers"):
        run_passes(module, context, TACTIC)


def test_without_the_feature_nothing_is_asked_of_it() -> None:
    module, context = parse_module(text_of("fused.yield %acc : f32"))
    with pytest.raises((PassError, CompileError), match="no tactic lowers"):
        run_passes(module, context, "convert-fused-to-kernel{target=cuda tactic=cuda_cublas_lt}")
