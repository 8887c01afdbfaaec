"""Loop fusion: neighbouring loops with the same trip count become one."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.ir import Block, Operation, Region

from mlirt.passes.control_flow.known_trip_counts import same_bound
from mlirt.passes.control_flow.region_rewriting import copy_before, is_pure, replace
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FuseLoopsPass(RulePass):
    """Make one counted loop of two with the same bounds, where the second needs nothing of the first.

    Layers between them move in front of both, as far as they do not need the first loop.

    Before:

        %a = scf.for %i = %zero to %n step %one iter_args(%p = %x) -> (tensor<4xf32>) { .. }
        %b = scf.for %i = %zero to %n step %one iter_args(%q = %y) -> (tensor<4xf32>) { .. }

    After:

        %a, %b = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %y) -> (tensor<4xf32>, tensor<4xf32>) { .. }
    """

    name = "fuse-loops"

    @rule(op(scf.ForOp).named("second"))
    def fuse(self, ctx: Context, m: Match, second: scf.ForOp) -> Outcome:
        first = second.prev_op
        while first is not None and not isinstance(first, scf.ForOp):
            first = first.prev_op
        if first is None:
            return None
        pairs = zip((first.lb, first.ub, first.step), (second.lb, second.ub, second.step), strict=True)
        if not all(same_bound(left, right, ctx) for left, right in pairs):
            return "the loop in front of it may have another trip count"
        if not _bring_together(first, second):
            return "it needs what the loop in front of it computes"
        starts, count = [*first.iter_args, *second.iter_args], len(first.iter_args)
        body = Block(arg_types=[first.body.block.args[0].type, *(value.type for value in starts)])
        index, *carried = body.args
        end = scf.YieldOp()
        end.location = first.location
        body.add_op(end)
        values = copy_before(first.body.block, [index, *carried[:count]], end)
        end.operands = [*values, *copy_before(second.body.block, [index, *carried[count:]], end)]
        made = m.insert(scf.ForOp(first.lb, first.ub, first.step, starts, Region(body)), first, second)
        replace(first, list(made.results[:count]))
        return list(made.results[count:])


def _bring_together(first: scf.ForOp, second: scf.ForOp) -> bool:
    """Move what stands between two loops in front of both; False where something there needs the first loop."""
    between: list[Operation] = []
    op = first.next_op
    while op is not None and op is not second:
        between.append(op)
        op = op.next_op
    needed = {value for one in (*between, second) for inner in one.walk() for value in inner.operands}
    if op is None or any(result in needed for result in first.results) or not all(map(is_pure, between)):
        return False
    block = first.parent
    assert block is not None
    for one in between:
        one.detach()
        block.insert_op_before(one, first)
    return True
