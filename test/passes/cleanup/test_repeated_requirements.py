"""Layers that are equal are asked once for what they need of lengths, and all others by themselves."""

from __future__ import annotations

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from mlirt.dialects.context import RtContext
from mlirt.dialects.length_requirements import LengthRequirement
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.tensor_op import TensorOp
from mlirt.passes.cleanup.repeated_requirements import RepeatedRequirements

_HEAD = """
func.func @main(%x: tensor<4x?xf32, #trt.dims<["4", "n"]>>) -> tensor<4x?xf32, #trt.dims<["4", "n"]>> {
"""
_TYPE = 'tensor<4x?xf32, #trt.dims<["4", "n"]>>'


def _sums(length: int) -> list[Operation]:
    lines = [
        f"  %v{k + 1} = trt.elementwise sum %v{k}, %x : ({_TYPE}, {_TYPE}) -> {_TYPE}".replace("%v0,", "%x,")
        for k in range(length)
    ]
    return _ops(_HEAD + "\n".join(lines) + f"\n  func.return %v{length} : {_TYPE}\n}}")


def _ops(text: str) -> list[Operation]:
    ctx = RtContext()
    register_dialects(ctx)
    module, _ = parse_source(ctx, text, "test")
    function = next(op for op in module.ops if isinstance(op, FuncOp))
    return list(function.body.block.ops)


def _any(_: LengthRequirement) -> bool:
    return True


@pytest.mark.parametrize("length", [2, 40])
def test_equal_layers_are_asked_once_and_answer_as_each_would(length: int) -> None:
    known = RepeatedRequirements(_any)
    for op in _sums(length):
        own = tuple(op.length_requirements()) if isinstance(op, TensorOp) else ()
        assert known.of(op) == own
    assert known.asked == 1


def test_what_differs_in_a_type_or_a_property_is_asked_again() -> None:
    text = """
    func.func @main(%x: tensor<2x6xf32>, %y: tensor<2x1xf32>) -> tensor<2x6xf32> {
      %a = trt.elementwise sum %x, %y : (tensor<2x6xf32>, tensor<2x1xf32>) -> tensor<2x6xf32>
      %b = trt.elementwise sum %y, %a : (tensor<2x1xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
      %c = trt.elementwise prod %y, %b : (tensor<2x1xf32>, tensor<2x6xf32>) -> tensor<2x6xf32>
      func.return %c : tensor<2x6xf32>
    }
    """
    known = RepeatedRequirements(_any)
    for op in _ops(text):
        own = tuple(op.length_requirements()) if isinstance(op, TensorOp) else ()
        assert known.of(op) == own
    assert known.asked == 3


def test_only_what_is_wanted_is_kept() -> None:
    known = RepeatedRequirements(lambda one: False)
    assert not any(map(known.of, _sums(3)))
