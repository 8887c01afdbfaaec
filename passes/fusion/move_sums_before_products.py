"""Moves a sum over the columns of a product, or the pixels of a convolution, in front of it."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.trt.reduce import ReduceOp
from mlirt.passes.fusion.affine_chains import AffineChain
from mlirt.passes.fusion.linear_sums import LINEAR, moved_sum
from mlirt.passes.rules import Match, Outcome, RulePass, either, op, rule


@dataclass(frozen=True)
class MoveSumsBeforeProductsPass(RulePass):
    """Let a sum or mean over the results of a linear layer with constant weights be one over its input.

    A sum over the columns of a product is the product with the sum of the matrix's columns. A sum over pixels of a
    convolution or deconvolution is a product of sums of its input's pixels: of all of them, or for taps that do not
    reach all, of those that they reach. Over some of the axes of the image a convolution along the others is left.
    Between both there may be sums, differences, products and quotients with constants. This reassociates sums, and
    nothing else: results differ by their rounding. Nobody else may read what lies between.

    Before:

        %p = trt.matrix_multiply %x, %w : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
        %y = trt.reduce sum %p {axes = array<i64: 1>} : (tensor<4x16xf32>) -> tensor<4x1xf32>

    After:

        %p = trt.elementwise prod %x, %summed : (tensor<4x8xf32>, tensor<1x8xf32>) -> tensor<4x8xf32>
        %y = trt.reduce sum %p {axes = array<i64: 1>} : (tensor<4x8xf32>) -> tensor<4x1xf32>
    """

    name = "move-sums-before-products"

    @rule(op(ReduceOp, kind=either("sum", "avg")).named("total"))
    def move(self, m: Match, total: ReduceOp) -> Outcome:
        chain = AffineChain.before(total, LINEAR, m.ctx)
        return None if chain is None else moved_sum(m, chain)
