"""Folds transposes, slices, reshapes and broadcasts around attention into its accesses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import ArrayAttr, FloatAttr
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import IndexOp, identity_region, is_identity, yielded
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.locations import fuse
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, with_dims
from mlirt.passes.fusion.access_composition import compose, identity_access, iteration_dims
from mlirt.passes.fusion.scalar_bodies import unconverted
from mlirt.passes.fusion.view_composition import order_before_view, through_view
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule


@dataclass(frozen=True)
class FoldMovesIntoAttentionPass(RulePass):
    """Let attention read what its operands were copied from, and write its result in the order that is wanted.

    The splitting into heads, a reshape and a transpose, so costs nothing, nor does the joining. An operand is read in
    its place as long as neighbours along a head stay neighbours in memory. The result takes another order where one
    transpose is all that reads it, with or without a function of its own; for the `target` `cpu` the columns of a head
    stay neighbours, of which whole vectors are stored there. Where queries or keys are copied and multiplied with a
    number that is neither 0 nor infinite, scores are multiplied with it, in the type of the computation,
    unless it is `exact`.

    Before:

        %h = fused.view %x : (tensor<1x64x128xf16>) -> tensor<1x64x4x32xf16>
        %q = fused.pointwise %h ["d0", "d2", "d1", "d3"] { h } : tensor<1x4x64x32xf16>
        %a = fused.attention %q, .. ["d0", "d1", "d2", "d4"] : tensor<1x4x64x32xf16>
        %y = fused.pointwise %a ["d0", "d2", "d1", "d3"] { a } : tensor<1x64x4x32xf16>

    After:

        %y = fused.attention %x, .. ["d0", "d2", "32*d1 + d4"], order = [0, 2, 1, 3] : tensor<1x64x4x32xf16>
    """

    name = "fold-moves-into-attention"
    target: str = "cuda"
    exact: bool = False

    @rule(op(AttentionOp).named("attention"))
    def read_in_place(self, m: Match, attention: AttentionOp) -> Outcome:
        heads = [attention.batch_rank + 2, attention.batch_rank + 2, attention.batch_rank + 3]
        obstacle = None
        for position, (value, own) in enumerate(zip(attention.operands, attention.access, strict=True)):
            found = _before(value, own, attention)
            if found is None:
                continue
            source, access = found
            if position < len(heads) and not _keeps_neighbours(access, own, f"d{heads[position]}"):
                obstacle = f"neighbours along a head of operand {position} would not be neighbours in memory"
                continue
            m.note = f"operand {position} is read where it lies"
            mover = value.owner
            attention.operands[position] = source
            attention.properties["access"] = ArrayAttr(_replaced(attention.access.data, position, access))
            if isinstance(mover, PointwiseOp) and mover.outputs[0].first_use is None:
                attention.location = fuse(mover, attention)
            if isinstance(mover, Operation):
                m.drop(mover)
            return attention
        return obstacle

    @rule(op(AttentionOp).named("attention"))
    def scale_scores(self, m: Match, attention: AttentionOp) -> Outcome:
        if self.exact:
            return None
        for value in (attention.query, attention.key):
            view = value.owner if isinstance(value.owner, ViewOp) and value.has_one_use() else None
            copied = value if view is None else view.input
            move = copied.owner
            factor = _factor(move) if isinstance(move, PointwiseOp) and copied.has_one_use() else None
            if factor is None or not isinstance(move, PointwiseOp):
                continue
            body = identity_region(element_of(copied.type))
            plain = m.insert(PointwiseOp(list(move.inputs), list(move.access), [copied.type], body), move, before=move)
            if view is None:
                attention.operands[attention.operands.index(value)] = plain.outputs[0]
            else:
                view.operands[0] = plain.outputs[0]
            _multiply_scores(attention, factor)
            m.note = "scores are multiplied with the number that queries or keys were"
            m.drop(move)
            return attention
        return None

    @rule(op(PointwiseOp, op(AttentionOp).named("attention"), ...).named("reader"))
    def write_in_order(self, m: Match, reader: PointwiseOp, attention: AttentionOp) -> Outcome:
        transposed = _order_of(reader, attention.output)
        is_move = is_identity(reader.body)
        if transposed is None or (not is_move and transposed == sorted(transposed)):
            return "{attention} is read by more than a transpose"
        before = attention.axes()
        order = [before[axis] for axis in transposed]
        if self.target == "cpu" and not _ends_with_columns(order, dims(reader.outputs[0].type)):
            return "columns of {attention} would not be neighbours in memory"
        properties = {**attention.properties, "order": integer_list(order)}
        properties.pop("operandSegmentSizes", None)
        made = AttentionOp.build(
            operands=[*attention.operands[:3], list(attention.extras)],
            properties=properties,
            result_types=[with_dims(attention.output.type, dims(reader.outputs[0].type))],
            regions=attention.detached_regions(),
        )
        m.note = "the result has the order of the transpose behind it"
        m.insert(made, *([] if is_move else [attention]), before=attention)
        if is_move:
            return made
        reader.operands[0] = made.output
        own = identity_access(len(transposed))
        reader.properties["access"] = ArrayAttr(_replaced(reader.access.data, 0, own))
        return reader

    @rule(op(PointwiseOp, op(ViewOp).named("view")).named("move"))
    def write_viewed_in_order(self, m: Match, move: PointwiseOp, view: ViewOp) -> Outcome:
        views = _views_of_attention(view)
        attention = views[-1].input.owner if views else None
        if not isinstance(attention, AttentionOp) or not is_identity(move.body) or len(move.inputs) != 1:
            return None
        transposed = _order_of(move, view.output)
        order = None if transposed is None else _order_before(attention.output, view, transposed)
        if order is None:
            return "the transpose parts axes that the view of {attention} joins"
        shape = with_dims(attention.output.type, [dims(attention.output.type)[axis] for axis in order])
        access = AccessAttr.of([iteration(order.index(axis)) for axis in range(len(order))])
        body = identity_region(element_of(shape))
        m.note = "the transpose goes in front of the view, where attention can write in its order"
        moved = m.insert(PointwiseOp([attention.output], [access], [shape], body))
        m.drop(*views)
        return m.insert(ViewOp(moved.outputs[0], move.outputs[0].type))

    @rule(op(PointwiseOp, op(PointwiseOp, op(AttentionOp), ...).named("function")).named("move"))
    def apply_in_order(self, m: Match, move: PointwiseOp, function: PointwiseOp) -> Outcome:
        asks_for_place = any(isinstance(one, IndexOp) for one in function.body.block.ops)
        if asks_for_place or not is_identity(move.body) or _order_of(move, function.outputs[0]) is None:
            return "{function} is read by more than a transpose"
        access = [compose(one, move.access.data[0]) for one in function.access]
        m.note = "the function behind attention is applied in the order of the transpose behind it"
        return m.insert(PointwiseOp(list(function.inputs), access, [move.outputs[0].type], function.body.clone()))


def _views_of_attention(last: ViewOp) -> list[ViewOp]:
    """The views of attention's result up to the last one, which nothing else reads; none where it is of another op."""
    views = [last]
    while isinstance(before := views[-1].input.owner, ViewOp):
        views.append(before)
    alone = all(view.output.has_one_use() and view.input.has_one_use() for view in views)
    return views if alone and isinstance(views[-1].input.owner, AttentionOp) else []


def _order_before(made: SSAValue, view: ViewOp, transposed: Sequence[int]) -> list[int] | None:
    """The order of axes in front of a view that the transposition of those behind it stands for."""
    return order_before_view(dims(made.type), dims(view.output.type), transposed)


def _factor(move: PointwiseOp) -> float | None:
    """The number that an op multiplies each element of its only operand with, beside conversions; None for others."""
    if len(move.inputs) != 1 or len(move.outputs) != 1:
        return None
    element, (result,) = move.body.block.args[0], yielded(move.body)
    product = unconverted(result).owner
    if element_of(move.inputs[0].type) != element_of(move.outputs[0].type) or not isinstance(product, arith.MulfOp):
        return None
    for one, other in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        number = unconverted(other).owner
        if unconverted(one) is element and isinstance(number, arith.ConstantOp):
            value = number.value
            is_usable = isinstance(value, FloatAttr) and math.isfinite(value.value.data) and value.value.data != 0
            return value.value.data if isinstance(value, FloatAttr) and is_usable else None
    return None


def _multiply_scores(attention: AttentionOp, factor: float) -> None:
    """Let the score begin with a product with a number."""
    block = attention.score.block
    wide, first = block.args[0], block.first_op
    assert first is not None
    number = arith.ConstantOp(FloatAttr(factor, wide.type))  # pyright: ignore[reportCallIssue, reportArgumentType]
    scaled = arith.MulfOp(wide, number.result)
    wide.replace_all_uses_with(scaled.result)
    scaled.operands[0] = wide
    block.insert_ops_before([number, scaled], first)


def _before(value: SSAValue, access: AccessAttr, attention: AttentionOp) -> tuple[SSAValue, AccessAttr] | None:
    """What a value was copied or viewed from, and how to read that instead."""
    owner = value.owner
    if isinstance(owner, ViewOp):
        space = (*attention.batch, attention.queries, attention.keys, attention.depth, attention.columns)
        extents = {f"d{axis}": extent for axis, extent in enumerate(space)}
        indices = through_view(dims(owner.input.type), dims(value.type), access.indices(), extents)
        return None if indices is None else (owner.input, AccessAttr.of(indices))
    if isinstance(owner, PointwiseOp) and len(owner.inputs) == len(owner.outputs) == 1 and is_identity(owner.body):
        return owner.inputs[0], compose(owner.access.data[0], access)
    return None


def _keeps_neighbours(new: AccessAttr, old: AccessAttr, head: str) -> bool:
    """Whether neighbours along a head are neighbours in memory, or were none before either."""
    return _has_neighbours(new, head) or not _has_neighbours(old, head)


def _has_neighbours(access: AccessAttr, head: str) -> bool:
    *outer, last = access.indices()
    alone = all(head not in iteration_dims(AccessAttr.of([index])) for index in outer)
    return alone and head not in iteration_dims(AccessAttr.of([last - iteration(int(head[1:]))]))


def _ends_with_columns(order: Sequence[int], sizes: Sequence[Dim]) -> bool:
    """Whether the last axis of attention's own order is the last one of another order, but for those of length 1."""
    behind = order.index(len(order) - 1) + 1
    return all(size == 1 for size in sizes[behind:])


def _replaced(accesses: Sequence[AccessAttr], position: int, access: AccessAttr) -> list[AccessAttr]:
    return [*accesses[:position], access, *accesses[position + 1 :]]


def _order_of(reader: PointwiseOp, read: SSAValue) -> list[int] | None:
    """For each axis of a transpose's result, the axis of what it reads first that it is; None for other moves."""
    sizes = dims(read.type)
    if len(reader.outputs) != 1 or len(dims(reader.outputs[0].type)) != len(sizes):
        return None
    indices = reader.access.data[0].indices()
    # An axis of length 1 is read at 0: any place of length 1 is its own.
    ones = [axis for axis, index in enumerate(indices) if index == 0 and sizes[axis] == 1]
    order: list[int] = []
    for place, size in enumerate(dims(reader.outputs[0].type)):
        found = [axis for axis, index in enumerate(indices) if index == iteration(place)]
        if not found and size == 1 and ones:
            found = [ones.pop(0)]
        if len(found) != 1 or sizes[found[0]] != size:
            return None
        order += found
    return order if sorted(order) == list(range(len(sizes))) else None
