"""Transposes and reshapes meet, cancel, and move to where they cost nothing."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, ModuleOp
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.integer_list import integer_list, integers
from mlirt.dialects.locations import fuse
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation, MatrixOperationAttr
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.cleanup.permutations import Permutation, Rearrangement, identity, is_identity
from mlirt.passes.cleanup.rewriting import blocks, insert_before, join_location, replace
from mlirt.passes.cleanup.transposition_sinking import sink


@dataclass(frozen=True)
class SimplifyShufflesPass(ModulePass):
    """Make one shuffle of two where that is possible, and none of those that cancel.

    A transposition moves behind the layers that only it feeds, in the hope of meeting its inverse; one of the last two
    axes in front of a matrix product becomes the product's own. A transposition of axes of length 1 becomes a reshape.

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
            _sink_transposition(op)


def rearrangement(op: ShuffleOp) -> Rearrangement | None:
    """What a shuffle does; None where its shape is known at run time only."""
    source, target = dims(op.input.type), dims(op.output.type)
    if any(map(is_unknown, (*source, *target))):
        return None
    first = identity(len(source)) if op.first_transpose is None else integers(op.first_transpose)
    second = identity(len(target)) if op.second_transpose is None else integers(op.second_transpose)
    middle = list(target)
    for axis, place in enumerate(second):
        middle[place] = target[axis]
    return Rearrangement(source, first, tuple(middle), second)


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


def shuffle(value: SSAValue, how: Rearrangement) -> ShuffleOp:
    """A layer for a rearrangement."""
    properties: dict[str, Attribute | None] = {"zero_is_placeholder": BoolAttr.from_bool(False)}
    if not is_identity(how.first):
        properties["first_transpose"] = integer_list(how.first)
    if how.transposition is None:
        properties["reshape_dims"] = DimsAttr.of(how.middle)
    if not is_identity(how.second):
        properties["second_transpose"] = integer_list(how.second)
    return ShuffleOp.build_inferred([value, None], properties)


def _transposition(value: SSAValue) -> tuple[ShuffleOp, Permutation] | None:
    op = value.owner
    how = rearrangement(op) if isinstance(op, ShuffleOp) else None
    permutation = None if how is None else how.transposition
    return (op, permutation) if isinstance(op, ShuffleOp) and permutation is not None else None


_FLIPPED = {
    MatrixOperation.NONE: MatrixOperation.TRANSPOSE,
    MatrixOperation.TRANSPOSE: MatrixOperation.NONE,
}


def _transpose_operands(op: MatrixMultiplyOp) -> None:
    for position, name in enumerate(("lhs_op", "rhs_op")):
        found = _transposition(op.operands[position])
        flag = op.lhs_op if position == 0 else op.rhs_op
        if found is None or flag.data not in _FLIPPED:
            continue
        shuffled, permutation = found
        rank = len(permutation)
        if permutation != (*range(rank - 2), rank - 1, rank - 2):
            continue
        op.operands[position] = shuffled.input
        op.properties[name] = MatrixOperationAttr(_FLIPPED[flag.data])
        join_location(op, shuffled)
        if shuffled.output.first_use is None:
            shuffled.detach()
            shuffled.erase()


def _sink_transposition(op: Operation) -> None:
    found = {value: _transposition(value) for value in op.operands}
    feeding = [pair for pair in found.values() if pair is not None]
    if not feeding or len(op.results) != 1:
        return
    permutation = feeding[0][1]
    if any(other != permutation for _, other in feeding):
        return
    if any(not _feeds_only(shuffled, op) for shuffled, _ in feeding):
        return
    sources = {value: pair[0].input for value, pair in found.items() if pair is not None}
    below = sink(op, permutation, sources)
    if below is None:
        return
    replace(op, below)
    for shuffled, _ in feeding:
        if shuffled.parent is not None:
            shuffled.detach()
            shuffled.erase()


def _feeds_only(shuffled: ShuffleOp, op: Operation) -> bool:
    return all(use.operation is op for use in shuffled.output.uses)
