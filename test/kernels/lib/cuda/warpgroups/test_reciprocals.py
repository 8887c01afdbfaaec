"""Quotients by constants in epilogues of half precision."""

from __future__ import annotations

import pytest
from lowered_network import parse_module
from xdsl.ir import Region

from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.kernels.lib.cuda.warpgroups.reciprocals import with_reciprocals

PRODUCT = """
func.func @main(%x: tensor<8x8xf16>, %w: tensor<8x8xf16>) -> tensor<8x8xf16> {{
  %y = fused.matmul %x, %w : (tensor<8x8xf16>, tensor<8x8xf16>) -> tensor<8x8xf16> {{
  ^bb0(%acc: f32):
    %c = arith.constant {number} : f32
    %q = arith.divf {operands} : f32
    %n = arith.truncf %q : f32 to f16
    fused.yield %n : f16
  }}
  func.return %y : tensor<8x8xf16>
}}"""


def names(number: str, operands: str) -> list[str]:
    module, _ = parse_module(PRODUCT.format(number=number, operands=operands))
    (op,) = [op for op in module.walk() if isinstance(op, MatmulOp)]
    region: Region = op.regions[-1]
    made = with_reciprocals(region)
    assert "arith.divf" in [inner.name for inner in region.block.ops]
    return [inner.name for inner in made.block.ops]


def test_quotients_by_constants_are_products() -> None:
    made = names("1.5", "%acc, %c")
    assert "arith.divf" not in made
    assert "arith.mulf" in made


@pytest.mark.parametrize(("number", "operands"), [("1.0e-35", "%acc, %c"), ("1.0e35", "%acc, %c"), ("1.5", "%c, %acc")])
def test_other_quotients_stay(number: str, operands: str) -> None:
    made = names(number, operands)
    assert "arith.divf" in made
    assert "arith.mulf" not in made
