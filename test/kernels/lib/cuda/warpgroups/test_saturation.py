"""Epilogues that end with the limits of int8, without them."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Region
from xdsl.parser import Parser

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.kernels.lib.cuda.warpgroups.saturation import without_limits

BODY = """
func.func @main(%x: tensor<4xi32>) -> tensor<4x{result}> {{
  %r = fused.pointwise %x {{access = [#fused.access<["d0"]>]}} : (tensor<4xi32>) -> tensor<4x{result}> {{
  ^bb0(%0: i32):
    %low = arith.constant {low} : i32
    %high = arith.constant {high} : i32
    %above = arith.maxsi %0, %low : i32
    %inside = arith.minsi {order} : i32
    %byte = arith.trunci %inside : i32 to i8
    {end}
  }}
  func.return %r : tensor<4x{result}>
}}
"""
SIGNED, UNSIGNED = "fused.yield %byte : i8", "%u = arith.bitcast %byte : i8 to ui8\n    fused.yield %u : ui8"


def ops(low: int, high: int, result: str = "i8", order: str = "%above, %high") -> list[str] | None:
    """What is left of the epilogue; None where its limits are not those of the result."""
    context = RtContext()
    register_dialects(context)
    text = BODY.format(low=low, high=high, result=result, order=order, end=SIGNED if result == "i8" else UNSIGNED)
    module = Parser(context, text).parse_module()
    (region,) = _regions(module)
    found = without_limits(region)
    return None if found is None else [op.name for op in found.block.ops]


def _regions(module: ModuleOp) -> list[Region]:
    return [region for op in module.walk() if op.name == "fused.pointwise" for region in op.regions]


@pytest.mark.parametrize(("low", "high", "result"), [(-128, 127, "i8"), (0, 255, "ui8")])
def test_limits_of_int8_go(low: int, high: int, result: str) -> None:
    assert ops(low, high, result) == ["fused.yield"]


def test_a_rectifier_stays() -> None:
    assert ops(0, 127) == ["arith.constant", "arith.maxsi", "fused.yield"]


def test_a_narrow_limit_stays() -> None:
    assert ops(-128, 100) == ["arith.constant", "arith.constant", "arith.maxsi", "arith.minsi", "fused.yield"]


@pytest.mark.parametrize(
    ("low", "high", "result", "order"),
    [
        (-128, 127, "ui8", "%above, %high"),
        (-200, 127, "i8", "%above, %high"),
        (0, 255, "i8", "%above, %high"),
        (-128, 127, "i8", "%0, %high"),  # nothing below is known
    ],
)
def test_others_wrap_around(low: int, high: int, result: str, order: str) -> None:
    assert ops(low, high, result, order) is None
