"""Rules that a file states as PDL text."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.passes.pdl.pattern_file import read_patterns
from mlirt.passes.rules import apply_rules


@dataclass(frozen=True)
class ApplyPdlPass(ModulePass):
    """Apply the `pdl.pattern` ops of a file until none of them matches, those with the largest benefit first.

    New ops bear the joined names of the layers that they replace, and matched layers that nothing reads any more are
    erased.
    Where `pdl.operation` has no result types in a rewrite, the op infers them. `pdl.apply_native_constraint` knows
    `"one_use"` of an operation, whose results only the matched ops may read, and `"constant"` of a value.

    Before:

        %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
        %y = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32> loc("second")

    After, with a pattern of two ReLUs and a rewrite to one:

        %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc(fused["first", "second"])
    """

    name = "apply-pdl"

    file: str

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        apply_rules(read_patterns(self.file, ctx), self, ctx, op)
