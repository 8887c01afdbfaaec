"""Scores to which something is added under other batch dimensions keep those, and so do the products around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, is_elementwise, iteration
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import IndexOp, is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, with_dims
from mlirt.passes.fusion.access_composition import identity_access, joining_view
from mlirt.passes.fusion.view_composition import axis_groups
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

_MATRIX = 2
_MAX_BODIES = 8


@dataclass(frozen=True)
class RegroupScoresPass(RulePass):
    """Compute attention's products under the batch dimensions that scores are added to in.

    Windows have a mask each, which all images share: scores of `[images * windows, heads, n, n]` are viewed
    as `[images, windows, heads, n, n]`, the mask is added, and they are viewed back. The first product is computed
    under the longer dimensions, and so is what follows up to the second one and a transpose of its result, which is
    viewed then. Nothing stands between the product and its softmax any more but bodies of single elements. Scores and
    weights have no other reader.

    Before:

        %s = fused.matmul %q, %k : tensor<8x3x4x4xf32>
        %v = fused.view %s : (tensor<8x3x4x4xf32>) -> tensor<2x4x3x4x4xf32>
        %a = fused.pointwise %v, %mask ["0", "d1", "0", "d3", "d4"] { s + mask } : tensor<2x4x3x4x4xf32>
        %b = fused.view %a : (tensor<2x4x3x4x4xf32>) -> tensor<8x3x4x4xf32>
        %w = fused.softmax %b {axis = 3 : i64}
        %y = fused.matmul %w, %values : tensor<8x3x4x16xf32>

    After:

        %s = fused.matmul %q5, %k5 : tensor<2x4x3x4x4xf32>
        %a = fused.pointwise %s, %mask ["0", "d1", "0", "d3", "d4"] { s + mask } : tensor<2x4x3x4x4xf32>
        %w = fused.softmax %a {axis = 4 : i64}
        %y5 = fused.matmul %w, %values5 : tensor<2x4x3x4x16xf32>
        %y = fused.view %y5 : (tensor<2x4x3x4x16xf32>) -> tensor<8x3x4x16xf32>
    """

    name = "regroup-scores"

    @rule(op(MatmulOp).named("second"))
    def regroup(self, m: Match, second: MatmulOp) -> Outcome:
        weights, softmax = _chain(second.lhs, SoftmaxOp)
        if not isinstance(softmax, SoftmaxOp) or softmax.epilogues or second.transpose_lhs.value.data:
            return None
        scores, back = _chain(softmax.input, ViewOp)
        added, forth = _chain(back.input, ViewOp) if isinstance(back, ViewOp) else ([], None)
        if not isinstance(back, ViewOp) or not isinstance(forth, ViewOp):
            return None
        ended, first = _chain(forth.input, MatmulOp)
        if not isinstance(first, MatmulOp) or any(_has_places(one.epilogue) for one in (first, second)):
            return "no product computes what is viewed"
        short, long = dims(forth.input.type), dims(forth.output.type)
        places = joining_view(long, short)
        is_batch = short[-_MATRIX:] == long[-_MATRIX:] and softmax.axis.value.data == len(short) - 1
        if dims(back.output.type) != short or not is_batch or places is None:
            return "the view regroups more than the batch"
        operands = [_regrouped(value, short, long) for value in (first.lhs, first.rhs, second.rhs)]
        known = [shape for shape in operands if shape is not None]
        if len(known) < len(operands):
            return "an operand of the products is shared by a part of the batch"
        lhs, rhs, values = (
            m.insert(ViewOp(value, with_dims(value.type, shape)), first).output
            for value, shape in zip((first.lhs, first.rhs, second.rhs), known, strict=True)
        )
        value = m.insert(_product(first, lhs, rhs, long, places), first).output
        for bodies, moved in ((ended, places), (added, {}), (scores, places)):
            for body in bodies:
                value = m.insert(body.under(value, long, moved), body.op).outputs[0]
        result = with_dims(softmax.output.type, long)
        value = m.insert(SoftmaxOp(value, len(long) - 1, bool(softmax.log.value.data), result=result), softmax).output
        for body in weights:
            value = m.insert(body.under(value, long, places), body.op).outputs[0]
        m.drop(first, *_ops(ended), forth, *_ops(added), back, *_ops(scores), softmax, *_ops(weights))
        shape = (*long[:-_MATRIX], *dims(second.output.type)[-_MATRIX:])
        product = m.insert(_product(second, value, values, shape, places), second)
        move = _transpose_of(second.output)
        if move is None:
            return m.insert(ViewOp(product.output, second.output.type), second)
        order = [axis for place in _order(move) for axis in _own_axes(place, short, long)]
        m.replaces(move)
        access = [iteration(order.index(axis)) for axis in range(len(shape))]
        result = with_dims(move.outputs[0].type, [shape[axis] for axis in order])
        moved = m.insert(PointwiseOp([product.output], [AccessAttr.of(access)], [result], move.body.clone()), move)
        return m.insert(ViewOp(moved.outputs[0], move.outputs[0].type), move)


@dataclass(frozen=True)
class _Body:
    """A pointwise op of a chain, and which of its operands the chain has before it."""

    op: PointwiseOp
    led: int

    def under(self, value: SSAValue, shape: Sequence[Dim], places: Mapping[str, Dim]) -> PointwiseOp:
        """The same of another value and under other dimensions."""
        inputs = [value if place == self.led else one for place, one in enumerate(self.op.inputs)]
        own = identity_access(len(shape))
        access = [own if k == self.led else one.substituted(places) for k, one in enumerate(self.op.access)]
        return PointwiseOp(inputs, access, [with_dims(self.op.outputs[0].type, shape)], self.op.body.clone())


def _chain(value: SSAValue, end: type[Operation]) -> tuple[list[_Body], Operation | None]:
    """The pointwise ops that lead to a value, first one first, and the op of a kind whose result the first one reads.

    Each reads what is before it element by element, and nobody else does.
    """
    bodies: list[_Body] = []
    while len(bodies) <= _MAX_BODIES and value.has_one_use():
        owner = value.owner
        if isinstance(owner, end):
            return bodies[::-1], owner
        if not isinstance(owner, PointwiseOp) or len(owner.outputs) != 1 or _has_places(owner.body):
            break
        led = [place for place in range(len(owner.inputs)) if _leads(owner, place, end)]
        if len(led) != 1:
            break
        bodies.append(_Body(owner, led[0]))
        value = owner.inputs[led[0]]
    return [], None


def _leads(body: PointwiseOp, place: int, end: type[Operation]) -> bool:
    """Whether an operand may be what a chain has before a body: an inner result of the same dimensions."""
    value, shape = body.inputs[place], dims(body.outputs[0].type)
    in_place = dims(value.type) == shape and is_elementwise(body.access.data[place], shape)
    return in_place and isinstance(value.owner, end | PointwiseOp) and value.has_one_use()


def _has_places(region: Region) -> bool:
    return any(isinstance(inner, IndexOp) for inner in region.block.ops)


def _regrouped(value: SSAValue, short: Sequence[Dim], long: Sequence[Dim]) -> list[Dim] | None:
    """The dimensions of a factor under the longer batch; None where only a part of a regrouped run is repeated."""
    own, found = dims(value.type), list[Dim]()
    for olds, news in axis_groups(short[:-_MATRIX], long[:-_MATRIX]):
        if all(own[axis] == short[axis] for axis in olds):
            found += [long[axis] for axis in news]
        elif all(own[axis] == 1 for axis in olds):
            found += [1] * len(news)
        else:
            return None
    return [*found, *own[-_MATRIX:]] if len(found) == len(long) - _MATRIX else None


def _transpose_of(value: SSAValue) -> PointwiseOp | None:
    """The only reader of a value, if that is a transpose of it."""
    reader = next((use.operation for use in value.uses), None)
    if not value.has_one_use() or not isinstance(reader, PointwiseOp) or not is_identity(reader.body):
        return None
    is_whole = len(reader.outputs) == 1 and sorted(_order(reader)) == list(range(len(dims(value.type))))
    return reader if is_whole and reader.parent is value.owner.parent else None


def _order(transpose: PointwiseOp) -> list[int]:
    """For each axis of the result of a transpose the axis of its operand; less than all for another move."""
    indices, shape = transpose.access.data[0].indices(), dims(transpose.outputs[0].type)
    places = [iteration(axis) for axis in range(len(shape))]
    return [indices.index(place) for place in places if place in indices]


def _own_axes(axis: int, short: Sequence[Dim], long: Sequence[Dim]) -> list[int]:
    """The axes under the longer dimensions that an axis under the shorter ones has become."""
    return next(news for olds, news in axis_groups(short, long) if axis in olds)


def _ops(bodies: Sequence[_Body]) -> list[PointwiseOp]:
    return [body.op for body in bodies]


def _product(
    product: MatmulOp, lhs: SSAValue, rhs: SSAValue, shape: Sequence[Dim], places: Mapping[str, Dim]
) -> MatmulOp:
    return MatmulOp(
        lhs,
        rhs,
        with_dims(product.output.type, shape),
        product.epilogue.clone(),
        list(product.extras),
        [access.substituted(places) for access in product.access],
        bool(product.transpose_lhs.value.data),
        bool(product.transpose_rhs.value.data),
    )


__all__ = ["RegroupScoresPass"]
