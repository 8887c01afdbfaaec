"""Folds branches whose condition is known, and loops that make no iteration."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.regions import source_of_condition
from mlirt.passes.control_flow.known_trip_counts import known_trip_count
from mlirt.passes.control_flow.region_rewriting import copy_before
from mlirt.passes.rules import Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FoldKnownBranchesPass(RulePass):
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

    @rule(op(scf.IfOp).named("branch"))
    def take_side(self, ctx: Context, branch: scf.IfOp) -> Outcome:
        try:
            array = array_of(source_of_condition(branch.cond), ctx)
        except ValueError:
            return None
        if array is None:
            return "its condition is known only to the run"
        taken = branch.true_region if bool(array.reshape(-1)[0]) else branch.false_region
        return copy_before(taken.block, [], branch) if taken.blocks else []

    @rule(op(scf.ForOp).named("loop"))
    def skip_loop(self, ctx: Context, loop: scf.ForOp) -> Outcome:
        iterations = known_trip_count(loop, ctx)
        return list(loop.iter_args) if iterations is not None and iterations <= 0 else "it may make an iteration"
