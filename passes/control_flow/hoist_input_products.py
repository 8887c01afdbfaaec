"""The product of a recurrent layer with its input is computed for all steps at once."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.indexing import GatherMode
from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.gather import GatherOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation, MatrixOperationAttr
from mlirt.passes.control_flow.region_rewriting import control_ops, is_outside, replace
from mlirt.passes.layer_builder import LayerBuilder


@dataclass(frozen=True)
class HoistInputProductsPass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for loop in control_ops(op):
            if isinstance(loop, scf.ForOp | scf.WhileOp):
                for inner in list(loop.regions[-1].block.ops):
                    if isinstance(inner, MatrixMultiplyOp):
                        _hoist(inner, loop, ctx)


def _hoist(op: MatrixMultiplyOp, loop: scf.ForOp | scf.WhileOp, ctx: Context) -> None:
    slice_ = op.lhs.owner
    if not isinstance(slice_, GatherOp) or slice_.mode.data is not GatherMode.DEFAULT or rank(slice_.indices.type) != 0:
        return
    inside = (slice_.axis.value.data, op.lhs_op.data, op.rhs_op.data)
    plain = inside[0] == 0 and rank(op.rhs.type) == 2 and inside[2] is not MatrixOperation.VECTOR
    outside = is_outside(slice_.data, loop) and is_outside(op.rhs, loop)
    is_row = inside[1] is MatrixOperation.VECTOR and rank(op.lhs.type) == 1
    is_matrix = inside[1] is MatrixOperation.NONE and rank(op.lhs.type) == 2
    if not (plain and outside and (is_row or is_matrix)):
        return
    before = LayerBuilder.in_front_of(loop, ctx, op)
    weight = op.rhs if is_row else before.reshaped(op.rhs, [1, *dims(op.rhs.type)])
    properties = {"lhs_op": MatrixOperationAttr(MatrixOperation.NONE), "rhs_op": op.rhs_op}
    product = before.layer(MatrixMultiplyOp, [slice_.data, weight], properties)
    replace(op, [LayerBuilder.in_front_of(op, ctx).slice_at(product, slice_.indices, 0)])
