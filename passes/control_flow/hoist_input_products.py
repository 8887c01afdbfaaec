"""The product of a recurrent layer with its input is computed for all steps at once."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf

from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation, MatrixOperationAttr
from mlirt.passes.control_flow.region_rewriting import is_outside
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.rules import Outcome, RulePass, op, rule


@dataclass(frozen=True)
class HoistInputProductsPass(RulePass):
    """Multiply the whole sequence by a weight in front of the loop that multiplies one slice of it in each iteration.

    One large product is faster than many small ones, and the loop keeps only what depends on its state. A slice past
    the end is 0, and so is its product.

    Before:

        %y = scf.for .. {
          %e = trt.gather %x, %j : (tensor<100x1x64xf32>, tensor<i64>) -> tensor<1x64xf32>
          %p = trt.matrix_multiply %e, %w : (tensor<1x64xf32>, tensor<64x32xf32>) -> tensor<1x32xf32>

    After:

        %v = trt.shuffle %w {reshape_dims = #trt.dims<["1", "64", "32"]>} : (tensor<64x32xf32>) -> tensor<1x64x32xf32>
        %q = trt.matrix_multiply %x, %v : (tensor<100x1x64xf32>, tensor<1x64x32xf32>) -> tensor<100x1x32xf32>
        %y = scf.for .. {
          %p = trt.gather %q, %j : (tensor<100x1x32xf32>, tensor<i64>) -> tensor<1x32xf32>
    """

    name = "hoist-input-products"

    @rule(op(MatrixMultiplyOp, op(GatherOp, mode="default").shared().named("part"), ...).named("product"))
    def hoist(self, ctx: Context, product: MatrixMultiplyOp, part: GatherOp) -> Outcome:
        block, loop = product.parent, product.parent_op()
        if block is None or not isinstance(loop, scf.ForOp | scf.WhileOp) or block is not loop.regions[-1].block:
            return None
        if not (is_outside(part.data, loop) and is_outside(product.rhs, loop)):
            return "its sequence or its weight is computed in the loop"
        is_row = product.lhs_op.data is MatrixOperation.VECTOR and rank(product.lhs.type) == 1
        is_matrix = product.lhs_op.data is MatrixOperation.NONE and rank(product.lhs.type) == 2
        is_weight = rank(product.rhs.type) == 2 and product.rhs_op.data is not MatrixOperation.VECTOR
        if rank(part.indices.type) or part.axis.value.data or not is_weight or not (is_row or is_matrix):
            return "it multiplies no row or matrix of a sequence by one matrix"
        before = LayerBuilder.in_front_of(loop, ctx, product)
        weight = product.rhs if is_row else before.reshaped(product.rhs, [1, *dims(product.rhs.type)])
        properties = {"lhs_op": MatrixOperationAttr(MatrixOperation.NONE), "rhs_op": product.rhs_op}
        whole = before.layer(MatrixMultiplyOp, [part.data, weight], properties)
        return LayerBuilder.in_front_of(product, ctx).slice_at(whole, part.indices, 0)
