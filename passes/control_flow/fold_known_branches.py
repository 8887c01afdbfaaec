"""Folds branches whose condition is known, and loops that make no iteration."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.regions import source_of_condition
from mlirt.passes.control_flow.known_trip_counts import known_trip_count
from mlirt.passes.control_flow.region_rewriting import control_ops, copy_before, replace


@dataclass(frozen=True)
class FoldKnownBranchesPass(ModulePass):
    """Replace a branch on a constant by its side, and a counted loop of at most 0 iterations by its initial values.

    Before:

        %c = trt.constant {value = dense<true> : tensor<i1>} : tensor<i1>
        %h = tensor.extract %c[] : tensor<i1>
        %y = scf.if %h -> (tensor<4xf32>) {
          %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
          scf.yield %t : tensor<4xf32>
        } else {
          scf.yield %x : tensor<4xf32>
        }

    After:

        %t = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "fold-known-branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for inner in control_ops(op):
            if isinstance(inner, scf.IfOp):
                _fold_branch(inner, ctx)
            elif (
                isinstance(inner, scf.ForOp)
                and (iterations := known_trip_count(inner, ctx)) is not None
                and iterations <= 0
            ):
                replace(inner, list(inner.iter_args))


def _fold_branch(op: scf.IfOp, ctx: Context) -> None:
    try:
        array = array_of(source_of_condition(op.cond), ctx)
    except ValueError:
        return
    if array is not None:
        taken = op.true_region if bool(array.reshape(-1)[0]) else op.false_region
        values = copy_before(taken.block, [], op) if taken.blocks else []
        if [value.type for value in values] == [result.type for result in op.results]:
            replace(op, values)
