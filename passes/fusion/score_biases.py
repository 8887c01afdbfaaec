"""Biases that are added to scores of attention in more dimensions than the product has that computes them."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, is_elementwise
from mlirt.dialects.fused.contraction import MatmulOp
from mlirt.dialects.fused.fused_op import yielded
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.passes.fusion.scalar_bodies import unconverted

_MAX_BIASES = 8


@dataclass(frozen=True)
class AddedBias:
    """A sum of what is computed so far and an operand; `sum` is the op, `place` that of the operand in it."""

    sum: PointwiseOp
    place: int

    @property
    def value(self) -> SSAValue:
        return self.sum.inputs[self.place]

    @property
    def access(self) -> AccessAttr:
        return self.sum.access.data[self.place]


@dataclass(frozen=True)
class BiasedScores:
    """Sums between two views: the first shows scores of a product, and the last gives them their shape again."""

    view: ViewOp
    """That shows the product's result in more dimensions."""
    biases: tuple[AddedBias, ...]
    """In the order in which they are added."""


def biased_scores(last: ViewOp) -> BiasedScores | None:
    """What a view gives the shape of the product's result again, if it leads to a softmax and is that."""
    value, found = last.input, list[AddedBias]()
    if not _leads_to_softmax(last.output):
        return None
    while isinstance(op := value.owner, PointwiseOp) and value.has_one_use():
        summand = _sum_of_scores(op, _MAX_BIASES)
        if summand is None:
            return None
        found.append(AddedBias(op, 1 - summand))
        value = op.inputs[summand]
    if not found or not isinstance(op, ViewOp) or not value.has_one_use():
        return None
    is_product = isinstance(op.input.owner, MatmulOp) and op.input.has_one_use()
    same = op.input.type == last.output.type and all(element_of(one.value.type) == _element(op) for one in found)
    return BiasedScores(op, tuple(reversed(found))) if is_product and same else None


def _element(view: ViewOp) -> object:
    return element_of(view.input.type)


def _sum_of_scores(op: PointwiseOp, most: int) -> int | None:
    """Which operand of a sum of two is what one view shows, through at most so many sums; None for another op."""
    if len(op.inputs) != 2 or len(op.outputs) != 1 or not _is_sum(op):
        return None
    shape = dims(op.outputs[0].type)
    for number, (value, access) in enumerate(zip(op.inputs, op.access, strict=True)):
        if dims(value.type) == shape and is_elementwise(access, shape) and _shows_scores(value, most - 1):
            return number
    return None


def _shows_scores(value: SSAValue, most: int) -> bool:
    """Whether at most so many sums lead from a view of a product's result to this."""
    owner = value.owner
    if isinstance(owner, ViewOp):
        return isinstance(owner.input.owner, MatmulOp)
    return most > 0 and isinstance(owner, PointwiseOp) and _sum_of_scores(owner, most) is not None


def _is_sum(op: PointwiseOp) -> bool:
    """Whether a body adds its two elements, whatever format it does so in."""
    total = unconverted(yielded(op.body)[0]).owner
    args = op.body.block.args
    return isinstance(total, arith.AddfOp) and {unconverted(total.lhs), unconverted(total.rhs)} == set(args)


def _leads_to_softmax(value: SSAValue) -> bool:
    """Whether a softmax is all that reads a tensor, through functions of one operand and views."""
    while isinstance(reader := _only_reader(value), PointwiseOp | ViewOp) and len(reader.results) == 1:
        value = reader.results[0]
    return isinstance(reader, SoftmaxOp)


def _only_reader(value: SSAValue) -> Operation | None:
    readers = {use.operation for use in value.uses}
    return next(iter(readers)) if len(readers) == 1 else None


__all__ = ["AddedBias", "BiasedScores", "biased_scores"]
