"""Composes and cancels transposes and reshapes, and moves them to where they cost nothing."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation, MatrixOperationAttr
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.cleanup.permutations import transpose
from mlirt.passes.cleanup.rewriting import join_location
from mlirt.passes.cleanup.shuffle_sinking import MOVABLE, below, sink
from mlirt.passes.cleanup.shuffles import rearrangement, shuffle
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class SimplifyShufflesPass(RulePass):
    """Make one shuffle of two where that is possible, and none of those that cancel.

    A shuffle moves behind the layers that only it feeds, in the hope of meeting its inverse: a transposition behind any
    layer that can renumber its axes, a reshape behind elementwise ones. A transposition of the last two axes in front
    of a matrix product becomes the product's own, one of axes of length 1 a reshape.

    Before:

        %a = trt.shuffle %x {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x3x4xf32>) -> tensor<2x4x3xf32>
        %b = trt.activation relu %a : ...
        %y = trt.shuffle %b {first_transpose = array<i64: 0, 2, 1>} : (tensor<2x4x3xf32>) -> tensor<2x3x4xf32>

    After:

        %y = trt.activation relu %x : (tensor<2x3x4xf32>) -> tensor<2x3x4xf32>
    """

    name = "simplify-shuffles"

    again = False  # every rewrite only touches what comes later

    @rule(op(ShuffleOp).named("last"))
    def join(self, m: Match, last: ShuffleOp) -> Outcome:
        if (own := rearrangement(last)) is None:
            return None
        best, source, absorbed = own.normalized(), last.input, list[Operation]()
        while isinstance(source.owner, ShuffleOp):
            before = rearrangement(source.owner)
            joined = None if before is None else before.then(best)
            if joined is None:
                break
            absorbed.insert(0, source.owner)
            best, source = joined, source.owner.input
        m.drop(*absorbed)
        if best.is_identity and source.type == last.output.type:
            return source
        return m.insert(shuffle(source, best), *absorbed, last) if absorbed or best != own else None

    @rule(op(MatrixMultiplyOp).named("product"))
    def transpose_operands(self, m: Match, product: MatrixMultiplyOp) -> Outcome:
        taken = [_transpose_operand(m, product, position, name) for position, name in enumerate(("lhs_op", "rhs_op"))]
        return product if any(taken) else None

    @rule(op(MOVABLE).named("layer"))
    def sink(self, m: Match, layer: Operation) -> Outcome:
        feeding = {value: value.owner for value in layer.operands if isinstance(value.owner, ShuffleOp)}
        if not feeding or not all(_feeds_only(shuffled, layer) for shuffled in feeding.values()):
            return None
        found = {rearrangement(shuffled) for shuffled in feeding.values()}
        how = found.pop()
        if how is None or found:
            return "its operands are shuffled in different ways"
        above = sink(layer, how, {value: shuffled.input for value, shuffled in feeding.items()})
        if above is None:
            return "it does not compute the same on operands that are not shuffled yet"
        m.insert(above)
        m.drop(*feeding.values())
        return m.insert(shuffle(above.results[0], below(above, how).normalized()), *feeding.values())


_FLIPPED = {
    MatrixOperation.NONE: MatrixOperation.TRANSPOSE,
    MatrixOperation.TRANSPOSE: MatrixOperation.NONE,
}


def _transpose_operand(m: Match, product: MatrixMultiplyOp, position: int, name: str) -> bool:
    """Let the product transpose an operand where that keeps the operand's rows in one piece; says whether it does."""
    shuffled = product.operands[position].owner
    how = rearrangement(shuffled) if isinstance(shuffled, ShuffleOp) else None
    flag = product.lhs_op if position == 0 else product.rhs_op
    if not isinstance(shuffled, ShuffleOp) or how is None or flag.data not in _FLIPPED or how.keeps_rows:
        return False
    rank = len(how.target)
    rest = how.then(transpose(how.target, (*range(rank - 2), rank - 1, rank - 2)))
    if rest is None or not rest.keeps_rows:
        return False
    source = shuffled.input
    product.operands[position] = source if rest.is_identity else m.insert(shuffle(source, rest), shuffled).output
    product.properties[name] = MatrixOperationAttr(_FLIPPED[flag.data])
    join_location(product, shuffled)
    m.drop(shuffled)
    return True


def _feeds_only(shuffled: ShuffleOp, layer: Operation) -> bool:
    return all(use.operation is layer for use in shuffled.output.uses)
