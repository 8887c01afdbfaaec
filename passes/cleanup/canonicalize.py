"""Canonicalization: removes layers that change nothing and gives equal things one form."""

from __future__ import annotations

import pkgutil
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.passes.cleanup import canonicalization
from mlirt.passes.options import option
from mlirt.passes.rules import Rule, apply_rules


@dataclass(frozen=True)
class CanonicalizePass(ModulePass):
    """Apply the rules in `passes/cleanup/canonicalization/` until none matches, in at most `max-sweeps` sweeps.

    Before:

        %z = trt.constant {value = dense<0.0> : tensor<1xf32>} : tensor<1xf32>
        %a = trt.elementwise sum %x, %z : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
        %b = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32>
        %y = trt.activation relu %b : (tensor<4xf32>) -> tensor<4xf32>

    After:

        %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "canonicalize"

    max_sweeps: int = option(8, at_least=1)

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for _ in range(self.max_sweeps):
            if not apply_rules(canonicalization_rules(), self, ctx, op, again=False):
                return


@cache
def canonicalization_rules() -> tuple[Rule, ...]:
    """The rules in the tables `RULES` of the files in `canonicalization/`."""
    files = pkgutil.iter_modules(canonicalization.__path__)
    modules = [import_module(f"{canonicalization.__name__}.{file.name}") for file in files]
    return tuple(one for module in modules for one in module.RULES)
