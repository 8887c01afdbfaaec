"""Rewrites `scf.for` over tensors as `scf.while`, so that counting is compiled like everything else."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType, i1, i64
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.regions import condition_of, source_of_index
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseKindAttr, ElementwiseOp
from mlirt.dialects.weights import WeightStore
from mlirt.errors import UnsupportedError

_COUNTER = TensorType(i64, [])


@dataclass(frozen=True)
class ExpandCountedLoopsPass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in [inner for inner in op.walk() if isinstance(inner, scf.ForOp)]:
            if all(isinstance(value.type, TensorType) for value in loop.iter_args):
                _Expansion(loop, weights_of(ctx)).run()


class _Expansion:
    def __init__(self, loop: scf.ForOp, store: WeightStore) -> None:
        self.loop = loop
        self.store = store

    def run(self) -> None:
        loop = self.loop
        start, limit, step = (self._tensor(bound) for bound in (loop.lb, loop.ub, loop.step))
        first = self._before(_less(start, limit))
        last = self._before(_binary(ElementwiseKind.SUB, limit, step))
        carried = [start, first, *loop.iter_args]
        before = self._condition(carried)
        body = self._body(last, step)
        made = scf.WhileOp(carried, [_COUNTER, *(value.type for value in loop.iter_args)], before, body)
        made.location = loop.location
        block = loop.parent
        assert block is not None
        block.insert_op_before(made, loop)
        for old, new in zip(loop.res, made.res[1:], strict=True):
            new.name_hint = old.name_hint
            old.replace_all_uses_with(new)
        loop.detach()
        loop.erase()

    def _condition(self, carried: list[SSAValue]) -> Region:
        before = Block(arg_types=[value.type for value in carried])
        counter, more, *rest = before.args
        for op in (*(test := condition_of(more))[0], scf.ConditionOp(test[1], counter, *rest)):
            op.location = self.loop.location
            before.add_op(op)
        return Region(before)

    def _body(self, last: SSAValue, step: SSAValue) -> Region:
        region = self.loop.detach_region(self.loop.body)
        body = region.block
        counter = body.insert_arg(_COUNTER, 0)
        index = body.args[1]
        _read_counter(index, counter)
        body.erase_arg(index)
        end = body.last_op
        assert isinstance(end, scf.YieldOp)
        again, following = _less(counter, last), _binary(ElementwiseKind.SUM, counter, step)
        ops = (again, following, scf.YieldOp(following.output, again.output, *end.operands))
        end.detach()
        end.erase()
        for op in ops:
            op.location = self.loop.location
            body.add_op(op)
        return region

    def _tensor(self, bound: SSAValue) -> SSAValue:
        try:
            found = source_of_index(bound)
        except ValueError as error:
            raise UnsupportedError(f"{self.loop.name}: {error}") from error
        if isinstance(found, SSAValue):
            return found
        import numpy as np

        return self._before(ConstantOp.from_array(np.array(found, np.int64), self.store, "count"))

    def _before(self, op: Operation) -> SSAValue:
        op.location = self.loop.location
        block = self.loop.parent
        assert block is not None
        block.insert_op_before(op, self.loop)
        return op.results[0]


def _binary(kind: ElementwiseKind, lhs: SSAValue, rhs: SSAValue) -> ElementwiseOp:
    return ElementwiseOp.build(
        operands=[lhs, rhs], properties={"kind": ElementwiseKindAttr(kind)}, result_types=[_COUNTER]
    )


def _less(lhs: SSAValue, rhs: SSAValue) -> ElementwiseOp:
    kind = ElementwiseKindAttr(ElementwiseKind.LESS)
    return ElementwiseOp.build(operands=[lhs, rhs], properties={"kind": kind}, result_types=[TensorType(i1, [])])


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
