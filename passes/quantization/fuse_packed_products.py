"""Matrix products with dequantised constant weights read the packed weights themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import UnitAttr
from xdsl.dialects.func import FuncOp
from xdsl.ir import Block

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.packed_weights import PackedMatrixMultiplyOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.options import option
from mlirt.passes.quantization.packed_weights import PackedWeights, packed_weights
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FusePackedProductsPass(RulePass):
    """Multiply by weights of 2, 4 or 8 bits as they are stored: they become numbers inside of the product.

    The weights are constants behind `trt.dequantize_blocks` with blocks along the sum, or behind `trt.dequantize` with
    one scale for all or for each column of the result, at least `min-elements` of them; these are packed into 4 bits
    where they fit. What is between the two may be a cast, a transposition, or a reshape that adds axes of length 1.
    4-bit floats stay packed with `floats`. With `most-rows` other than 0 products of usually more rows stay as they
    are.

    Before:

        %w = trt.dequantize_blocks %c, %s {bits = 4, block = 32, depth = 64}
            : (tensor<5x32xui8>, tensor<5x2xf32>) -> tensor<5x64xf32>
        %y = trt.matrix_multiply %x, %w {rhs_op = transpose} : (tensor<3x64xf32>, tensor<5x64xf32>) -> tensor<3x5xf32>

    After:

        %y = trt.packed_matrix_multiply %x, %c, %s, %z {bits = 4, block = 32}
            : (tensor<3x64xf32>, tensor<5x32xui8>, tensor<5x2xf32>, tensor<1x1xui8>) -> tensor<3x5xf32>
    """

    name = "fuse-packed-products"

    min_elements: int = option(4096, at_least=0)
    most_rows: int = option(0, at_least=0)
    floats: bool = False

    @rule(op(MatrixMultiplyOp).named("product"))
    def fuse(self, m: Match, ctx: Context, product: MatrixMultiplyOp) -> Outcome:
        found = packed_weights(product, ctx, self.min_elements)
        if not isinstance(found, PackedWeights):
            return found
        if found.float4 and not self.floats:
            return "its weights are 4-bit floats, which are multiplied as numbers here"
        rows = prod(typical(size, m.analysis(_typical_values)) for size in dims(product.output.type)[:-1])
        if self.most_rows and rows > self.most_rows:
            return f"it has some {rows} rows, which share numbers that a launch in front of it makes"
        layers, arrays = LayerBuilder.in_front_of(product, ctx), (found.codes, found.scale, found.zero)
        weights = [layers.constant(*pair) for pair in zip(arrays, ("codes", "scale", "zero_point"), strict=True)]
        sizes = {"bits": found.bits, "block": found.block}
        if found.float4:
            return m.make(PackedMatrixMultiplyOp, product.lhs, *weights[:2], None, **sizes, float4=UnitAttr())
        return m.make(PackedMatrixMultiplyOp, product.lhs, *weights, **sizes)


def _typical_values(block: Block) -> Mapping[str, int]:
    """What is known of the lengths of a function, also for the blocks in it."""
    holder = block.parent_op()
    return (
        typical_values(block)
        if isinstance(holder, FuncOp | None) or holder.parent is None
        else _typical_values(holder.parent)
    )
