"""Moves a scale in front of the bias of a product, so that weights can take the scale."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.tensor_types import element_count, element_of, is_float
from mlirt.dialects.trt.elementwise import ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.passes.rules import Match, Outcome, RulePass, binary, constant, op, rule, value, where

PRODUCT = op(MatrixMultiplyOp, value(), constant()).named("product")
TOTAL = binary("sum", PRODUCT, constant("bias")).named("total")
FACTOR = constant("factor", where(lambda array: array.size == 1, "one number"))


def _is_float_sum(total: ElementwiseOp) -> bool:
    (product,) = [one for one in total.operands if isinstance(one.owner, MatrixMultiplyOp)]
    return is_float(element_of(product.type)) and element_count(product.type) == element_count(total.output.type)


@dataclass(frozen=True)
class MoveScaleBeforeBiasPass(RulePass):
    """Exchange the addition of a constant to a matrix product and the multiplication by a number that follows it.

    The product has a constant right-hand side, and nothing else reads it or the sum. So queries and keys that are
    scaled behind their bias become products like the values.

    Before:

        %p = trt.matrix_multiply %x, %w : ...
        %s = trt.elementwise sum %p, %b : ...
        %y = trt.elementwise prod %s, %c : ...

    After:

        %p = trt.matrix_multiply %x, %w : ...
        %s = trt.elementwise prod %p, %c : ...
        %y = trt.elementwise sum %s, %bc : ...
    """

    name = "move-scale-before-bias"

    @rule(binary("prod", TOTAL.where(_is_float_sum, "the bias makes the sum longer, or they are integers"), FACTOR))
    def exchange(
        self, m: Match, product: MatrixMultiplyOp, total: ElementwiseOp, bias: SSAValue, factor: SSAValue
    ) -> Outcome:
        array = m.array(bias)
        shift = m.constant(array * m.array(factor).reshape(()).astype(array.dtype), "bias", total)
        scaled = m.make_after([m.root], ElementwiseOp, product.output, factor, **m.root.properties)
        return m.make_after([total], ElementwiseOp, scaled.output, shift, **total.properties)
