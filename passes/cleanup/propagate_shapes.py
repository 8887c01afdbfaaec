"""Shape inference: shapes that the network computes become known at build time."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.dialects.shape_arithmetic import ShapeArithmetic
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.cleanup.rewriting import blocks
from mlirt.passes.cleanup.shape_refinement import refine, update_results


@dataclass(frozen=True)
class PropagateShapesPass(ModulePass):
    """Follow shape arithmetic, give layers the shapes that it computes, and infer all types again.

    An integer tensor of at most one dimension that turns out to be known becomes a constant. Dimensions that only the
    run knows stay `?`.

    Before:

        %s = trt.shape %x : (tensor<?x6xf32, #trt.dims<["n", "6"]>>) -> tensor<2xi64>
        %t = trt.elementwise prod %s, %two : (tensor<2xi64>, tensor<2xi64>) -> tensor<2xi64>
        %y = trt.shuffle %z, %t : (..., tensor<2xi64>) -> tensor<?x?xf32>

    After:

        %y = trt.shuffle %z {reshape_dims = #trt.dims<["2*n", "12"]>} : ...
    """

    name = "propagate-shapes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in blocks(op):
            arithmetic = ShapeArithmetic()
            for layer in list(block.ops):
                if isinstance(layer, TensorOp) and not isinstance(layer, ConstantOp):
                    refine(layer, arithmetic, ctx)
        for function in op.ops:
            if isinstance(function, FuncOp):
                update_results(function)
