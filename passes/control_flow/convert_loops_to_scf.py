"""Converts the boundary layers of loops to `scf.for` and `scf.while`."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.passes.control_flow.boundaries import Boundaries
from mlirt.passes.control_flow.loop_region import LoopRegion
from mlirt.passes.control_flow.scopes import follow_results, path_of, sort_block


@dataclass(frozen=True)
class ConvertLoopsToScfPass(ModulePass):
    """Replace the layers at the borders of each loop by `scf.for` where only a count limits it, else by `scf.while`.

    The carried tensors are the recurrences and what the outputs collect; iterators become slices at the counter. With
    a count and a condition the smaller trip count holds. A run in which an iterator or a collected tensor is
    shorter than the loop ends with an error. Needs the attributes of infer-nesting.

    Before:

        trt.trip_limit count %n {loop = @steps} : tensor<i64>
        %e = trt.iterator %x {loop = @steps, trt.nesting = ["steps"]} : (tensor<5x4xf32>) -> tensor<4xf32>
        %r = trt.recurrence %z {loop = @steps, trt.nesting = ["steps"]} : (tensor<4xf32>) -> tensor<4xf32>
        %s = trt.elementwise sum %r, %e {trt.nesting = ["steps"]} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
        trt.recurrence_next %r, %s {trt.nesting = ["steps"]} : tensor<4xf32>, tensor<4xf32>
        %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>

    After:

        %y = scf.for %i = %zero to %count step %one iter_args(%r = %z) -> (tensor<4xf32>) {
          %j = tensor.from_elements ..
          trt.require %inside {message = "..: the loop goes on past the end of its iterator"} : tensor<i1>
          %e = trt.gather %x, %j : (tensor<5x4xf32>, tensor<i64>) -> tensor<4xf32>
          %s = trt.elementwise sum %r, %e : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
          scf.yield %s : tensor<4xf32>
        }
    """

    name = "convert-loops-to-scf"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if not isinstance(function, FuncOp) or not function.body.blocks:
                continue
            block = function.body.block
            loops = Boundaries.of(block).loops
            deepest_first = sorted(
                loops.values(), key=lambda parts: -max((len(path_of(one)) for one in parts.all()), default=0)
            )
            for parts in deepest_first:
                LoopRegion(ctx, block, parts).convert()
            if loops:
                sort_block(block)
                follow_results(function)
