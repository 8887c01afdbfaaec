"""Conversions by additions give the same bits as conversions, for ties, clamps and zero points of all kinds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from contractions import Problem
from hypothesis import given, settings
from hypothesis import strategies as st
from lowered_network import parse_module
from quantized_contractions import BYTES, quantized_convolution_text, random_bytes

from mlirt.dialects.interpreter import interpret
from mlirt.passes.pipeline import run_passes

Array = np.ndarray[Any, np.dtype[Any]]

BODY = """
func.func @main(%x: tensor<4096x{source}> {{trt.name = "x"}}) -> (tensor<4096x{result}> {{trt.name = "y"}}) {{
  %r = fused.pointwise %x {{access = [#fused.access<["d0"]>]}} : (tensor<4096x{source}>) -> tensor<4096x{result}> {{
  ^bb0(%0: {source}):
    %s = arith.bitcast %0 : {source} to {signless}
    %a = arith.{convert} %s : {signless} to f32
    %scale = arith.constant {scale:.9e} : f32
    %scaled = arith.{operation} %a, %scale : f32
    %rounded = math.roundeven %scaled : f32
    %zero = arith.constant {zero}.0 : f32
    %moved = arith.addf %rounded, %zero : f32
    %low = arith.constant {low}.0 : f32
    %high = arith.constant {high}.0 : f32
    %above = arith.maximumf %moved, %low : f32
    %inside = arith.minimumf %above, %high : f32
    %whole = arith.fptosi %inside : f32 to i32
    %byte = arith.trunci %whole : i32 to i8
    %y = arith.bitcast %byte : i8 to {result}
    fused.yield %y : {result}
  }}
  func.return %r : tensor<4096x{result}>
}}
"""


def both(text: str, inputs: dict[str, Array]) -> tuple[Array, Array, str]:
    """The result before the pass and after it, and what became of the ops."""
    module, context = parse_module(text)
    before = interpret(module, context, inputs)["y"]
    run_passes(module, context, "strength-reduce-conversions")
    return before, interpret(module, context, inputs)["y"], str(module)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_quantised_numbers_are_requantised_to_the_same(data: st.DataObject) -> None:
    source, result = data.draw(st.sampled_from(["i8", "ui8", "i16"])), data.draw(st.sampled_from(["i8", "ui8"]))
    limits = np.iinfo(BYTES[result])
    dtype = np.dtype(np.int16) if source == "i16" else BYTES[source]
    scale = data.draw(st.sampled_from([0.5, 1.0, 0.25, 3.0, 1.5]) | st.floats(2.0**-10, 100, width=32))
    text = BODY.format(
        source=source,
        signless=source.removeprefix("u"),
        result=result,
        convert="uitofp" if source == "ui8" else "sitofp",
        operation=data.draw(st.sampled_from(["mulf", "divf"])),
        scale=scale,
        zero=data.draw(st.integers(limits.min, limits.max)),
        low=limits.min,
        high=limits.max,
    )
    numbers = np.iinfo(dtype)
    x = np.random.default_rng(0).integers(numbers.min, numbers.max, 4096, dtype, endpoint=True)
    before, after, module = both(text, {"x": x})
    np.testing.assert_array_equal(after, before)
    assert not any(name in module for name in ("sitofp", "uitofp", "fptosi", "divf", "roundeven"))


CHAIN = """
func.func @main(%x: tensor<4096xi16> {{trt.name = "x"}}) -> (tensor<4096xi8> {{trt.name = "y"}}) {{
  %r = fused.pointwise %x {{access = [#fused.access<["d0"]>]}} : (tensor<4096xi16>) -> tensor<4096xi8> {{
  ^bb0(%0: i16):
    %a = arith.sitofp %0 : i16 to f32
    %low = arith.constant -128.0 : f32
    %high = arith.constant 127.0 : f32
    %nought = arith.constant 0.0 : f32
    %zero = arith.constant {zero}.0 : f32
    %first = arith.constant {first:.9e} : f32
    %second = arith.constant {second:.9e} : f32
    %third = arith.constant {third:.9e} : f32
    %scaled = arith.mulf %a, %first : f32
    %rounded = math.roundeven %scaled : f32
    %moved = arith.addf %rounded, %zero : f32
    %above = arith.maximumf %moved, %low : f32
    %inside = arith.minimumf %above, %high : f32
    %whole = arith.fptosi %inside : f32 to i32
    %byte = arith.trunci %whole : i32 to i8
    %back = arith.sitofp %byte : i8 to f32
    %centred = arith.subf %back, %zero : f32
    %wide = arith.mulf %centred, %second : f32
    %kept = {kept} : f32
    %quotient = arith.divf %kept, %third : f32
    %again = math.roundeven %quotient : f32
    %moved2 = arith.addf %again, %zero : f32
    %above2 = arith.maximumf %moved2, %low : f32
    %inside2 = arith.minimumf %above2, %high : f32
    %whole2 = arith.fptosi %inside2 : f32 to i32
    %y = arith.trunci %whole2 : i32 to i8
    fused.yield %y : i8
  }}
  func.return %r : tensor<4096xi8>
}}
"""


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_chains_of_roundings(data: st.DataObject) -> None:
    numbers = st.sampled_from([0.5, 1.0, 3.0]) | st.floats(2.0**-10, 100, width=32)
    second, third = data.draw(numbers), data.draw(numbers)
    text = CHAIN.format(
        zero=data.draw(st.integers(-128, 127)),
        first=data.draw(numbers) / 128,
        second=second,
        third=data.draw(st.sampled_from([second, third])),
        kept=data.draw(st.sampled_from(["arith.maximumf %wide, %nought", "arith.negf %wide"])),
    )
    x = np.random.default_rng(0).integers(-(2**15), 2**15, 4096, np.int16)
    before, after, module = both(text, {"x": x})
    np.testing.assert_array_equal(after, before)
    assert not any(name in module for name in ("tofp", "fpto", "divf", "roundeven"))


@pytest.mark.parametrize(
    ("element", "residual", "result"), [("i8", "", "i8"), ("ui8", "i8", "ui8"), ("i8", "ui8", "f32")]
)
def test_epilogues_of_convolutions(element: str, residual: str, result: str) -> None:
    problem = Problem((1, 16, 9, 7), (24, 16, 3, 3), pre=(1,), post=(1,))
    text = quantized_convolution_text(problem, element, result, residual=residual)
    inputs = {"x": random_bytes(problem.input, element), "r": random_bytes(problem.output, residual or "i8", 1)}
    before, after, module = both(text, inputs)
    np.testing.assert_array_equal(after, before)
    assert "tofp" not in module
    assert "fpto" not in module
