"""Loop unrolling: short counted loops are written out."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf, tensor
from xdsl.dialects.builtin import IndexType, IntegerAttr
from xdsl.ir import SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.control_flow.known_trip_counts import known_number, known_trip_count
from mlirt.passes.control_flow.region_rewriting import copy_before, replace
from mlirt.passes.options import option
from mlirt.passes.rules import Outcome, RulePass, op, rule


@dataclass(frozen=True)
class UnrollLoopsPass(RulePass):
    """Write out a counted loop of at most `max-iterations` iterations and, all iterations together, at most `max-ops`
    ops.

    The counter becomes a constant in each iteration, so that slices at it become plain ones and iterations fuse with
    each other.

    Before:

        %y = scf.for %i = %zero to %two step %one iter_args(%a = %x) -> (tensor<4xf32>) {
          %b = trt.unary neg %a : (tensor<4xf32>) -> tensor<4xf32>
          scf.yield %b : tensor<4xf32>
        }

    After:

        %b = trt.unary neg %x : (tensor<4xf32>) -> tensor<4xf32>
        %y = trt.unary neg %b : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "unroll-loops"

    max_iterations: int = option(8, at_least=0)
    max_ops: int = option(96, at_least=0)

    @rule(op(scf.ForOp).named("loop"))
    def unroll(self, ctx: Context, loop: scf.ForOp) -> Outcome:
        iterations = known_trip_count(loop, ctx)
        if iterations is None:
            return "how often it iterates is known only to the run"
        size = sum(1 for _ in loop.body.walk())
        if iterations > self.max_iterations or iterations * size > self.max_ops:
            return f"{iterations} iterations of {size} ops are more than max-iterations or max-ops"
        return _unrolled(loop, iterations, ctx)


def _unrolled(loop: scf.ForOp, iterations: int, ctx: Context) -> list[SSAValue]:
    """The results of copies of the body, one behind another in front of the loop."""
    first, step = loop.lb, loop.step
    carried = list(loop.iter_args)
    for iteration in range(iterations):
        index = arith.ConstantOp(
            IntegerAttr(known_number(first, ctx) + iteration * known_number(step, ctx), IndexType())
        )
        index.location = loop.location
        block = loop.parent
        assert block is not None
        block.insert_op_before(index, loop)
        carried = copy_before(loop.body.block, [index.result, *carried], loop)
        _read_constant(index, ctx)
    return carried


def _read_constant(index: arith.ConstantOp, ctx: Context) -> None:
    """Let those who turn the index into a tensor read a constant tensor."""
    import numpy as np

    assert isinstance(index.value, IntegerAttr)
    number = np.array(index.value.value.data, np.int64)
    for cast in [use.operation for use in index.result.uses]:
        for made in [use.operation for use in cast.results[0].uses] if isinstance(cast, arith.IndexCastOp) else []:
            if isinstance(made, tensor.FromElementsOp):
                constant = ConstantOp.from_array(number, weights_of(ctx), "iteration")
                constant.location = index.location
                block = made.parent
                assert block is not None
                block.insert_op_before(constant, made)
                replace(made, [constant.output])
