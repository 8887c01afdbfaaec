"""The arguments of a kernel are called after what they are to its layer, whatever the network calls its tensors."""

from __future__ import annotations

import re

import pytest
from xdsl.dialects.builtin import IndexType
from xdsl.parser import Parser

from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.registry import register_dialects
from mlirt.passes.pipeline import run_passes

_EPILOGUE = """
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>, %c: tensor<64xf32>, %d: tensor<64x64xf32>)
    -> tensor<64x64xf32> {
  %y = fused.matmul %a, %b, %c, %d {fused.tactic = "TACTIC",
      access = [#fused.access<["d1"]>, #fused.access<["d0", "d1"]>]}
      : (tensor<64x64xf32>, tensor<64x64xf32>, tensor<64xf32>, tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%acc: f32, %one: f32, %other: f32):
    %0 = arith.addf %acc, %one : f32
    %1 = arith.WORD %0, %other : f32
    fused.yield %1 : f32
  }
  func.return %y : tensor<64x64xf32>
}
"""
_ATTENTION = """
func.func @main(%all: tensor<1x3x128x64xf16>) -> tensor<1x1x128x64xf16> {
  %y = fused.attention %all, %all, %all {fused.tactic = "TACTIC", access = [#fused.access<["d0", "d1", "d2", "d4"]>,
      #fused.access<["d0", "d1 + 1", "d3", "d4"]>, #fused.access<["d0", "d1 + 2", "d3", "d5"]>],
      reduced = #trt.dims<["128", "64"]>}
      : (tensor<1x3x128x64xf16>, tensor<1x3x128x64xf16>, tensor<1x3x128x64xf16>) -> tensor<1x1x128x64xf16> {
  ^bb0(%s: f32):
    fused.yield %s : f32
  }
  func.return %y : tensor<1x1x128x64xf16>
}
"""


def _arguments(text: str, target: str) -> list[str]:
    """What the memory of the kernels is called."""
    ctx = RtContext()
    register_dialects(ctx)
    module = Parser(ctx, text).parse_module()
    run_passes(module, ctx, f"convert-fused-to-kernel{{target={target}}}")
    kernels = [op for op in module.walk() if isinstance(op, FuncOp)]
    arguments = [arg for kernel in kernels for arg in kernel.body.block.args]
    return [arg.name_hint or "" for arg in arguments if not isinstance(arg.type, IndexType)]


@pytest.mark.parametrize("tactic", ["generic", "cuda_tiles:64x64"])
def test_what_an_epilogue_takes(tactic: str) -> None:
    added = _EPILOGUE.replace("TACTIC", tactic)
    assert sorted(_arguments(added.replace("WORD", "addf"), "cuda")) == ["bias", "lhs", "output", "residual", "rhs"]
    assert sorted(_arguments(added.replace("WORD", "mulf"), "cuda")) == ["bias", "lhs", "output", "rhs", "scale"]


def test_names_of_the_network_do_not_matter() -> None:
    one = _EPILOGUE.replace("TACTIC", "generic").replace("WORD", "addf")
    assert _arguments(one, "cpu") == _arguments(re.sub(r"%([abcd])\b", r"%tensor_\1", one), "cpu")


@pytest.mark.parametrize("tactic", ["generic", "cuda_flash:64x64w4", "cuda_groups:128x128s2"])
def test_parts_of_one_tensor_have_roles_of_their_own(tactic: str) -> None:
    assert {"query", "key", "value", "output"} <= set(_arguments(_ATTENTION.replace("TACTIC", tactic), "cuda"))
