"""Matrix products with dequantised constant weights read the packed weights themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.passes import ModulePass

from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.shared_attributes import integer
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.trt.packed_weights import PackedMatrixMultiplyOp
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.layer_builder import LayerBuilder
from mlirt.passes.options import option
from mlirt.passes.quantization.packed_weights import PackedWeights, packed_weights
from mlirt.passes.remarks import applied, declined


@dataclass(frozen=True)
class FusePackedProductsPass(ModulePass):
    """Multiply by weights of 2, 4 or 8 bits as they are stored: they become numbers inside of the product.

    The weights are constants behind `trt.dequantize_blocks` with blocks along the sum, or behind `trt.dequantize` with
    one scale for all or for each column of the result, at least `min-elements` of them; these are packed into 4 bits
    where they fit. What is between the two may be a cast, a transposition, or a reshape that adds axes of length 1.
    With `most-rows` other than 0 products of usually more rows stay as they are.

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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        lengths = dict[str, int]()
        for block in tensor_blocks(op):
            if isinstance(block.parent_op(), FuncOp):
                lengths = typical_values(block)  # of what follows in it, too
            for inner in list(block.ops):
                if isinstance(inner, MatrixMultiplyOp):
                    self._apply(inner, lengths, ctx)

    def _apply(self, product: MatrixMultiplyOp, lengths: Mapping[str, int], ctx: Context) -> None:
        found = packed_weights(product, ctx, self.min_elements)
        rows = prod(typical(size, lengths) for size in dims(product.output.type)[:-1])
        if not isinstance(found, PackedWeights):
            declined(product, found)
        elif self.most_rows and rows > self.most_rows:
            declined(product, f"it has some {rows} rows, which share numbers that a launch in front of it makes")
        else:
            _fuse(product, found, ctx)


def _fuse(product: MatrixMultiplyOp, weights: PackedWeights, ctx: Context) -> None:
    layers = LayerBuilder.in_front_of(product, ctx)
    operands = [
        product.lhs,
        layers.constant(weights.codes, "codes"),
        layers.constant(weights.scale, "scale"),
        layers.constant(weights.zero, "zero_point"),
    ]
    made = PackedMatrixMultiplyOp.build_inferred(
        operands, {"bits": integer(weights.bits), "block": integer(weights.block)}
    )
    layers.insert(made)
    made.output.name_hint = product.output.name_hint
    product.output.replace_all_uses_with(made.output)
    product.detach()
    product.erase()
    applied(made)
