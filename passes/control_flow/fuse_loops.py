"""Loop fusion: neighbouring loops with the same trip count become one."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region
from xdsl.passes import ModulePass

from mlirt.dialects.locations import fuse
from mlirt.dialects.regions import tensor_blocks
from mlirt.passes.control_flow.known_trip_counts import same_bound
from mlirt.passes.control_flow.region_rewriting import copy_before, is_pure, replace


@dataclass(frozen=True)
class FuseLoopsPass(ModulePass):
    """Make one counted loop of two with the same bounds, where the second needs nothing of the first.

    Layers between them move in front of both, as far as they do not need the first loop.

    Before:

        %a = scf.for %i = %zero to %n step %one iter_args(%p = %x) -> (tensor<4xf32>) { .. }
        %b = scf.for %i = %zero to %n step %one iter_args(%q = %y) -> (tensor<4xf32>) { .. }

    After:

        %a, %b = scf.for %i = %zero to %n step %one iter_args(%p = %x, %q = %y) -> (tensor<4xf32>, tensor<4xf32>) { .. }
    """

    name = "fuse-loops"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in list(tensor_blocks(op)):
            loops = [inner for inner in block.ops if isinstance(inner, scf.ForOp)]
            for place in range(len(loops) - 1):
                fused = _fused(loops[place], loops[place + 1], ctx)
                if fused is not None:
                    loops[place + 1] = fused


def _fused(first: scf.ForOp, second: scf.ForOp, ctx: Context) -> scf.ForOp | None:
    pairs = zip((first.lb, first.ub, first.step), (second.lb, second.ub, second.step), strict=True)
    if not all(same_bound(left, right, ctx) for left, right in pairs) or not _bring_together(first, second):
        return None
    old = [first, second]
    body = Block(arg_types=[first.body.block.args[0].type, *(value.type for loop in old for value in loop.iter_args)])
    inner = scf.YieldOp()
    body.add_op(inner)
    count = len(first.iter_args)
    values = copy_before(first.body.block, [body.args[0], *body.args[1 : 1 + count]], inner)
    values += copy_before(second.body.block, [body.args[0], *body.args[1 + count :]], inner)
    inner.detach()
    inner.erase()
    end = scf.YieldOp(*values)
    end.location = first.location
    body.add_op(end)
    made = scf.ForOp(first.lb, first.ub, first.step, [*first.iter_args, *second.iter_args], Region(body))
    made.location = fuse(first, second)
    block = second.parent
    assert block is not None
    block.insert_op_before(made, second)
    replace(first, list(made.results[:count]))
    replace(second, list(made.results[count:]))
    return made


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
