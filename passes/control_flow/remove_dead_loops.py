"""Dead code elimination of branches and loops."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.passes.control_flow.region_rewriting import control_ops, is_pure


@dataclass(frozen=True)
class RemoveDeadLoopsPass(ModulePass):
    """Erase a branch or loop whose results nothing reads, unless it checks its inputs.

    Before:

        %u = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<4xf32>) { .. }
        func.return %x : tensor<4xf32>

    After:

        func.return %x : tensor<4xf32>
    """

    name = "remove-dead-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in reversed(control_ops(op)):
            if inner.parent is not None and is_pure(inner) and all(one.first_use is None for one in inner.results):
                inner.detach()
                inner.drop_all_references()
                inner.erase(safe_erase=False)
