"""Says of each layer in which loops and branches it is."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.passes.control_flow.known_shapes import name_lengths
from mlirt.passes.control_flow.nesting import Nesting
from mlirt.passes.control_flow.scopes import NESTING, follow_results, has_boundaries


@dataclass(frozen=True)
class InferNestingPass(ModulePass):
    """Give each layer inside of a loop or a branch the attribute `trt.nesting`: their names, the outermost first.

    A network says only where loops and conditionals begin and end; what is inside follows from the data flow. Raises
    `InvalidModelError` that names the layer where they are not cleanly nested, where one branch uses the inside of the
    other, where a loop has no limit or a conditional no condition, and where the inside is an output of the network.

    Before:

        trt.trip_limit count %n {loop = @steps} : tensor<i32>
        %r = trt.recurrence %x {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
        %s = trt.unary neg %r : (tensor<4xf32>) -> tensor<4xf32>
        trt.recurrence_next %r, %s : tensor<4xf32>, tensor<4xf32>
        %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>

    After:

        trt.trip_limit count %n {loop = @steps} : tensor<i32>
        %r = trt.recurrence %x {loop = @steps, trt.nesting = ["steps"]} : (tensor<4xf32>) -> tensor<4xf32>
        %s = trt.unary neg %r {trt.nesting = ["steps"]} : (tensor<4xf32>) -> tensor<4xf32>
        trt.recurrence_next %r, %s {trt.nesting = ["steps"]} : tensor<4xf32>, tensor<4xf32>
        %y = trt.loop_output last_value %r {loop = @steps} : (tensor<4xf32>) -> tensor<4xf32>
    """

    name = "infer-nesting"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, FuncOp) and function.body.blocks and has_boundaries(function.body.block):
                name_lengths(function.body.block)
                nesting = Nesting(function.body.block)
                for inner in nesting.ops:
                    path = nesting.path(inner)
                    if path:
                        inner.attributes[NESTING] = ArrayAttr(StringAttr(scope) for scope in path)
                follow_results(function)
