"""Rewrites `scf.for` over tensors as `scf.while`, so that counting is compiled like everything else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Region, SSAValue

from mlirt.dialects.regions import condition_of, source_of_index
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.errors import UnsupportedError
from mlirt.passes.layer_builder import COUNTER, LayerBuilder
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class ExpandCountedLoopsPass(RulePass):
    """Replace each `scf.for` by an `scf.while` that carries its counter, and whether to go on, as tensors.

    Before:

        %y = scf.for %i = %zero to %n step %one iter_args(%a = %x) -> (tensor<4xf32>) {
          %b = ..
          scf.yield %b : tensor<4xf32>
        }

    After:

        %first = trt.elementwise less %start, %limit : (tensor<i64>, tensor<i64>) -> tensor<i1>
        %y = scf.while (%i = %start, %more = %first, %a = %x) : .. {
          %c = tensor.extract %more[] : tensor<i1>
          scf.condition(%c) %i, %a : tensor<i64>, tensor<4xf32>
        } do {
        ^bb0(%j: tensor<i64>, %d: tensor<4xf32>):
          %b = ..
          %again = trt.elementwise less %j, %last : (tensor<i64>, tensor<i64>) -> tensor<i1>
          %next = trt.elementwise sum %j, %step : (tensor<i64>, tensor<i64>) -> tensor<i64>
          scf.yield %next, %again, %b : tensor<i64>, tensor<i1>, tensor<4xf32>
        }
    """

    name = "expand-counted-loops"

    @rule(op(scf.ForOp).named("loop"))
    def expand(self, ctx: Context, m: Match, loop: scf.ForOp) -> Outcome:
        if not all(isinstance(value.type, TensorType) for value in loop.iter_args):
            return None
        made = LayerBuilder.in_front_of(loop, ctx)
        start, limit, step = (_tensor(bound, loop, made) for bound in (loop.lb, loop.ub, loop.step))
        carried = [start, made.binary(ElementwiseKind.LESS, start, limit), *loop.iter_args]
        last = made.binary(ElementwiseKind.SUB, limit, step)
        types = [COUNTER, *(value.type for value in loop.iter_args)]
        expanded = m.insert(scf.WhileOp(carried, types, _condition(carried, loop), _body(loop, last, step, ctx)))
        return list(expanded.res[1:])


def _tensor(bound: SSAValue, loop: scf.ForOp, made: LayerBuilder) -> SSAValue:
    try:
        found = source_of_index(bound)
    except ValueError as error:
        raise UnsupportedError(f"{loop.name}: {error}") from error
    return made.number(found) if isinstance(found, int) else found


def _condition(carried: Sequence[SSAValue], loop: scf.ForOp) -> Region:
    before = Block(arg_types=[value.type for value in carried])
    counter, more, *rest = before.args
    ops, holds = condition_of(more)
    for inner in (*ops, scf.ConditionOp(holds, counter, *rest)):
        inner.location = loop.location
        before.add_op(inner)
    return Region(before)


def _body(loop: scf.ForOp, last: SSAValue, step: SSAValue, ctx: Context) -> Region:
    """The body, which carries the counter and whether to go on as well."""
    region = loop.detach_region(loop.body)
    body, end = region.block, region.block.last_op
    counter, index = body.insert_arg(COUNTER, 0), body.args[1]
    _read_counter(index, counter)
    body.erase_arg(index)
    assert isinstance(end, scf.YieldOp)
    made = LayerBuilder(ctx, body, loop, end)
    again = made.binary(ElementwiseKind.LESS, counter, last)
    end.operands = [made.binary(ElementwiseKind.SUM, counter, step), again, *end.operands]
    return region


def _read_counter(index: SSAValue, counter: SSAValue) -> None:
    """Let those who turned the index into a tensor read the counter."""
    for use in list(index.uses):
        cast = use.operation
        if not isinstance(cast, arith.IndexCastOp):
            raise UnsupportedError(f"{cast.name} reads a loop's index: expected it as a tensor only")
        for inner in list(cast.result.uses):
            made = inner.operation
            if not isinstance(made, tensor.FromElementsOp):
                raise UnsupportedError(f"{made.name} reads a loop's index: expected it as a tensor only")
            made.result.replace_all_uses_with(counter)
            made.detach()
            made.erase()
        cast.detach()
        cast.erase()
