"""Composes and cancels transposes and reshapes, and moves them to where they cost nothing."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from mlirt.dialects.locations import fuse
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation, MatrixOperationAttr
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.cleanup.permutations import transpose
from mlirt.passes.cleanup.rewriting import blocks, insert_before, join_location, replace
from mlirt.passes.cleanup.shuffle_sinking import below, sink
from mlirt.passes.cleanup.shuffles import rearrangement, shuffle


@dataclass(frozen=True)
class SimplifyShufflesPass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in blocks(op):
            _simplify(block)


def _simplify(block: Block) -> None:
    """One sweep is enough: every rewrite only touches what comes later."""
    for op in list(block.ops):
        if op.parent is None:
            continue
        if isinstance(op, ShuffleOp):
            _join(op)
        elif isinstance(op, MatrixMultiplyOp):
            _transpose_operands(op)
        else:
            _sink_shuffle(op)


def _join(op: ShuffleOp) -> None:
    own = rearrangement(op)
    if own is None:
        return
    best, source, absorbed = own.normalized(), op.input, list[Operation]()
    while isinstance(source.owner, ShuffleOp):
        before = rearrangement(source.owner)
        joined = None if before is None else before.then(best)
        if joined is None:
            break
        absorbed.insert(0, source.owner)
        best, source = joined, source.owner.input
    if best.is_identity and source.type == op.output.type:
        replace(op, source)
    elif absorbed or best != own:
        made = shuffle(source, best)
        insert_before(op, made, fuse(*absorbed, op))
        replace(op, made.output)
    for one in absorbed:
        if one.results[0].first_use is None and one.parent is not None:
            one.detach()
            one.erase()


_FLIPPED = {
    MatrixOperation.NONE: MatrixOperation.TRANSPOSE,
    MatrixOperation.TRANSPOSE: MatrixOperation.NONE,
}


def _transpose_operands(op: MatrixMultiplyOp) -> None:
    """Let the product transpose an operand where that keeps the operand's rows in one piece."""
    for position, name in enumerate(("lhs_op", "rhs_op")):
        shuffled = op.operands[position].owner
        how = rearrangement(shuffled) if isinstance(shuffled, ShuffleOp) else None
        flag = op.lhs_op if position == 0 else op.rhs_op
        if how is None or flag.data not in _FLIPPED or how.keeps_rows:
            continue
        assert isinstance(shuffled, ShuffleOp)
        rank = len(how.target)
        rest = how.then(transpose(how.target, (*range(rank - 2), rank - 1, rank - 2)))
        if rest is None or not rest.keeps_rows:
            continue
        source = shuffled.input
        if not rest.is_identity:
            source = insert_before(op, shuffle(source, rest), shuffled.location)
        op.operands[position] = source
        op.properties[name] = MatrixOperationAttr(_FLIPPED[flag.data])
        join_location(op, shuffled)
        if shuffled.output.first_use is None:
            shuffled.detach()
            shuffled.erase()


def _sink_shuffle(op: Operation) -> None:
    feeding = {value: value.owner for value in op.operands if isinstance(value.owner, ShuffleOp)}
    if not feeding or len(op.results) != 1 or any(not _feeds_only(shuffled, op) for shuffled in feeding.values()):
        return
    found = {rearrangement(shuffled) for shuffled in feeding.values()}
    how = found.pop()
    if how is None or found:
        return
    above = sink(op, how, {value: shuffled.input for value, shuffled in feeding.items()})
    if above is None:
        return
    insert_before(op, above)
    moved = shuffle(above.results[0], below(above, how).normalized())
    replace(op, insert_before(op, moved, fuse(*feeding.values())))
    for shuffled in feeding.values():
        if shuffled.parent is not None:
            shuffled.detach()
            shuffled.erase()


def _feeds_only(shuffled: ShuffleOp, op: Operation) -> bool:
    return all(use.operation is op for use in shuffled.output.uses)
