"""RMS normalisation and the product that reads it: (x * r * gamma) W = r * (x (gamma W)), with r one number per row."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import dims
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.passes.rules import Match, Outcome, RulePass, binary, constant, op, rule, value, where


def _is_row_factor(factor: SSAValue) -> bool:
    return dims(factor.type)[-1:] == (1,) and not isinstance(factor.owner, ConstantOp)


def _products_read(normal: ElementwiseOp) -> bool:
    """Whether only products with constants on the right read what is normalised; else it is computed all the same."""
    readers = [(use.operation, use.index) for use in normal.output.uses]
    return all(
        isinstance(reader, MatrixMultiplyOp) and index == 0 and isinstance(reader.rhs.owner, ConstantOp)
        for reader, index in readers
    )


PER_COLUMN = where(lambda array: array.size == array.shape[-1], "one number per column")
FACTOR = value("factor").where(_is_row_factor, "there is no factor that is computed for each row")
NORMAL = (
    binary("prod", binary("prod", value("x"), FACTOR).shared(), constant("gamma", PER_COLUMN))
    .where(_products_read, "others than products with constants read it too")
    .shared()
)
WEIGHT = constant("weight", where(lambda array: array.size == array.shape[-1] * array.shape[-2], "one matrix"))
PRODUCT = op(MatrixMultiplyOp, NORMAL, WEIGHT, lhs_op="none", rhs_op="none").named("product")


@dataclass(frozen=True)
class MoveRowFactorBehindProductPass(RulePass):
    """Multiply rows by their factor behind a product instead of in front of it, and columns in its weights.

    The factor becomes part of the product's epilogue, and what was normalised is never written.

    Before:

        %n = trt.elementwise prod %x, %r : (tensor<8x64xf32>, tensor<8x1xf32>) -> tensor<8x64xf32>
        %g = trt.elementwise prod %n, %gamma : (tensor<8x64xf32>, tensor<1x64xf32>) -> tensor<8x64xf32>
        %y = trt.matrix_multiply %g, %w : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>

    After:

        %p = trt.matrix_multiply %x, %gw : (tensor<8x64xf32>, tensor<64x16xf32>) -> tensor<8x16xf32>
        %y = trt.elementwise prod %p, %r : (tensor<8x16xf32>, tensor<8x1xf32>) -> tensor<8x16xf32>
    """

    name = "move-row-factor-behind-product"

    @rule(PRODUCT)
    def move(
        self, m: Match, product: MatrixMultiplyOp, x: SSAValue, factor: SSAValue, gamma: SSAValue, weight: SSAValue
    ) -> Outcome:
        if dims(x.type) != dims(product.lhs.type):
            return "its rows are repeated before they are multiplied"
        matrix, column = m.array(weight), m.array(gamma).reshape(-1, 1)
        scaled = m.constant((matrix.astype("f8") * column).astype(matrix.dtype), "scaled", product)
        moved = m.make_after([product], MatrixMultiplyOp, x, scaled, **product.properties)
        return m.make(ElementwiseOp, moved.output, factor, kind="prod")
