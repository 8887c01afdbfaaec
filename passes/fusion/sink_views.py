"""Reshapes move behind the pointwise ops that they feed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import arith, func
from xdsl.ir import SSAValue

from mlirt.dialects.fused.access import AccessAttr, is_elementwise
from mlirt.dialects.fused.fused_op import IndexOp, YieldOp, identity_region, is_identity
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.reduction import ReductionOp
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of, is_half, with_dims
from mlirt.passes.fusion.access_composition import identity_access, iteration_dims, joining_view, unit_view
from mlirt.passes.fusion.epilogues import Accumulating
from mlirt.passes.fusion.score_biases import biased_scores
from mlirt.passes.fusion.view_composition import through_view
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule, some

_MAX_BODIES = 16


@dataclass(frozen=True)
class SinkViewsPass(RulePass):
    """Compute a pointwise op on the dimensions before a view, and view its result instead.

    So an activation or a bias behind a reshape can join the convolution or product before it. The viewed tensor is
    computed by such an op or a pointwise one, and the view is read by pointwise ops alone. Its other operands are
    views of tensors of the same dimensions, or read the same for all positions; where the view only adds or drops axes
    of length 1, or joins axes of what another pointwise op computes, they may be anything. What ends a product or a
    convolution of the dimensions behind the view stays there: the view is an operand of its epilogue. Where a product
    or convolution in front of the view has no other reader, operands of the dimensions behind it are viewed as well.

    Before:

        %v = fused.view %x : (tensor<2x4x1x8xf32>) -> tensor<2x4x8xf32>
        %y = fused.pointwise %v ["d0", "d1", "d2"], %b ["d1"] { max(v + b, 0) } : tensor<2x4x8xf32>

    After:

        %p = fused.pointwise %x ["d0", "d1", "d2", "d3"], %b ["d1"] { max(x + b, 0) } : tensor<2x4x1x8xf32>
        %y = fused.view %p : (tensor<2x4x1x8xf32>) -> tensor<2x4x8xf32>

    A slice or transpose in front of a view of the first kind reads what the view shows: so it can join its readers. In
    front of any other view it is read through that, where the only reader is a slice or transpose again: heads of
    attention are a slice of a product, a view, and a transpose.

    A conversion to a wider type goes the other way, where all that reads the view has bodies that may do it: what a
    convolution or product writes and a normalisation reads stays narrow. Where a chain of pointwise ops ends in the
    narrow type again, all of it moves, and so does a conversion to what the caller gets.

    Biases that are added to scores between two views, as positions along height and width of an image have them, are
    added to each other first; the view of their sum is added to the scores as the product has them.
    """

    name = "sink-views"

    @rule(op(ViewOp, op(PointwiseOp).named("conversion")).named("view"))
    def narrow(self, m: Match, view: ViewOp, conversion: PointwiseOp) -> Outcome:
        if not _only_widens(conversion) or not isinstance(conversion.inputs[0].owner, Accumulating):
            return None
        if not all(isinstance(use.operation, ReductionOp | PointwiseOp) for use in view.output.uses):
            return "not all that reads the view can do the conversion"
        if _narrows_again(view.output, dims(view.input.type)):
            return "what reads the view ends in the narrow type"
        shape = dims(view.output.type)
        narrow = m.insert(ViewOp(conversion.inputs[0], with_dims(conversion.inputs[0].type, shape)))
        access, body = identity_access(len(shape)), conversion.detach_region(conversion.body)
        return m.insert(PointwiseOp([narrow.output], [access], [view.output.type], body))

    @rule(op(ViewOp, op(PointwiseOp).named("last")).named("view"))
    def add_at_once(self, m: Match, view: ViewOp, last: PointwiseOp) -> Outcome:
        found = biased_scores(view)
        if found is None:
            return None
        shape, (bias, *others) = last.outputs[0].type, found.biases
        total, access = bias.value, bias.access
        for one in others:
            pair, accesses = [total, one.value], [access, one.access]
            if one.place == 0:
                pair, accesses = pair[::-1], accesses[::-1]
            total = m.insert(PointwiseOp(pair, accesses, [shape], one.sum.body.clone()), one.sum).outputs[0]
            access = identity_access(len(dims(shape)))
        if not is_elementwise(access, dims(shape)) or dims(total.type) != dims(shape):
            total = m.insert(
                PointwiseOp([total], [access], [shape], identity_region(element_of(shape))), bias.sum
            ).outputs[0]
        operands = [found.view.input, m.insert(ViewOp(total, view.output.type)).output]
        if found.biases[-1].place == 0:
            operands = operands[::-1]
        access, body = identity_access(len(dims(view.output.type))), last.detach_region(last.body)
        m.drop(found.view, *(one.sum for one in found.biases))
        return m.insert(PointwiseOp(operands, [access, access], [view.output.type], body))

    @rule(op(ViewOp, op(PointwiseOp).named("move")).named("view"))
    def move(self, m: Match, view: ViewOp, move: PointwiseOp) -> Outcome:
        places = unit_view(dims(view.output.type), dims(view.input.type))
        if places is None or not is_identity(move.body):
            return None
        access = move.access.data[0].substituted(places)
        return m.insert(PointwiseOp(list(move.inputs), [access], [view.output.type], move.detach_region(move.body)))

    @rule(op(PointwiseOp, op(ViewOp, op(PointwiseOp).named("move")).named("view")).named("reader"))
    def read_through(self, m: Match, reader: PointwiseOp, view: ViewOp, move: PointwiseOp) -> Outcome:
        moves = all(is_identity(one.body) and len(one.inputs) == len(one.outputs) == 1 for one in (reader, move))
        (access, *_), space = reader.access, dims(reader.outputs[0].type)
        if not moves or is_elementwise(access, dims(view.output.type)):
            return None
        extents = {f"d{axis}": size for axis, size in enumerate(space)}
        places = through_view(dims(view.input.type), dims(view.output.type), access.indices(), extents)
        if places is None:
            return "the view joins axes that are read apart"
        read = move.access.data[0].substituted({f"d{axis}": place for axis, place in enumerate(places)})
        body = reader.detach_region(reader.body)
        return m.insert(PointwiseOp(list(move.inputs), [read], [reader.outputs[0].type], body))

    @rule(op(PointwiseOp, inputs=some(op(ViewOp).shared())).named("reader"))
    def sink(self, m: Match, reader: PointwiseOp) -> Outcome:
        after = dims(reader.outputs[0].type)
        views = [view for value in reader.inputs if (view := _view_of(reader, value, after)) is not None]
        if not views or len(reader.outputs) != 1:
            return "the view has readers of other kinds, is not read element by element, or shows no computed tensor"
        if any(isinstance(inner, IndexOp) for inner in reader.body.block.ops):
            return "what it computes depends on the position"
        before = dims(views[0].input.type)
        sources: dict[SSAValue, ViewOp] = {view.output: view for view in views if dims(view.input.type) == before}
        places = unit_view(before, after)
        joins = places is None and all(isinstance(view.input.owner, PointwiseOp) for view in sources.values())
        places = joining_view(before, after) if joins else places
        if joins and _ends_a_product(reader, after):
            return "it ends a product that has the dimensions behind the view"
        is_free = all(map(_is_alone, sources.values())) and ((joins and places is not None) or _is_returned(reader))
        if _only_widens(reader) and not is_free and not _narrows_again(reader.outputs[0], before):
            return "it is a conversion that the view's readers may do"
        pairs = list(zip(reader.inputs, reader.access, strict=True))
        reads = [_read_before(*pair, sources, before, places) for pair in pairs]
        others = [pair for pair, read in zip(pairs, reads, strict=True) if read is None]
        if others and (not _may_end(sources, reader, after) or not all(_is_whole(*pair, after) for pair in others)):
            return "another operand is not broadcast along the dimensions that the view joins"
        viewed = {value: m.insert(ViewOp(value, with_dims(value.type, before))).output for value, _ in others}
        own = identity_access(len(before))
        found = [read or (viewed[value], own) for read, (value, _) in zip(reads, pairs, strict=True)]
        result, body = with_dims(reader.outputs[0].type, before), reader.detach_region(reader.body)
        moved = m.insert(PointwiseOp([value for value, _ in found], [access for _, access in found], [result], body))
        m.drop(*sources.values())
        return m.insert(ViewOp(moved.outputs[0], reader.outputs[0].type))


def _may_end(sources: Mapping[SSAValue, ViewOp], reader: PointwiseOp, after: tuple[Dim, ...]) -> bool:
    """Whether a product or convolution that is viewed can take in what reads the view, and no other one would."""
    return all(map(_shows_a_product, sources.values())) and not _ends_a_product(reader, after)


def _shows_a_product(view: ViewOp) -> bool:
    """Whether a view alone reads what a product or convolution, perhaps with pointwise ops behind it, computes."""
    made = view.input.owner
    ends = isinstance(made, PointwiseOp) and _ends_a_product(made, dims(view.input.type))
    return _is_alone(view) and (ends or isinstance(made, Accumulating))


def _is_whole(value: SSAValue, access: AccessAttr, shape: tuple[Dim, ...]) -> bool:
    """Whether a tensor of these dimensions is read element by element."""
    return dims(value.type) == shape and is_elementwise(access, shape)


def _is_returned(op: PointwiseOp) -> bool:
    """Whether nothing but the network's caller reads what an op computes."""
    return all(isinstance(use.operation, func.ReturnOp) for use in op.outputs[0].uses)


def _is_alone(view: ViewOp) -> bool:
    """Whether a tensor is viewed once, and the view read once: what is computed of it joins what computes it."""
    return view.input.has_one_use() and view.output.has_one_use()


def _ends_a_product(op: PointwiseOp, shape: tuple[Dim, ...]) -> bool:
    """Whether an op reads, element by element and alone, what a product has or a few pointwise ops have made of it."""
    waiting = [op]
    for _ in range(_MAX_BODIES):
        if not waiting:
            break
        one = waiting.pop()
        for value, access in zip(one.inputs, one.access, strict=True):
            if is_elementwise(access, shape) and dims(value.type) == shape and value.has_one_use():
                if isinstance(value.owner, Accumulating):
                    return True
                waiting += [value.owner] if isinstance(value.owner, PointwiseOp) else []
    return False


def _only_widens(op: PointwiseOp) -> bool:
    """Whether an op converts one tensor, element by element, to a wider type of float."""
    inner = [one for one in op.body.block.ops if not isinstance(one, YieldOp)]
    if len(op.inputs) != 1 or len(op.outputs) != 1 or len(inner) != 1 or not isinstance(inner[0], arith.ExtFOp):
        return False
    return is_elementwise(op.access.data[0], dims(op.outputs[0].type))


def _narrows_again(value: SSAValue, before: tuple[Dim, ...]) -> bool:
    """Whether all that a wide tensor behind a view is read for is a chain of bodies that ends in halves, which an
    epilogue can be, and can be computed on the dimensions `before` the view.
    """
    places = unit_view(before, dims(value.type))
    while not is_half(element_of(value.type)):
        readers = {use.operation for use in value.uses}
        reader = next(iter(readers), None)
        if len(readers) != 1 or not isinstance(reader, PointwiseOp) or len(reader.outputs) != 1:
            return False
        others = [pair for pair in zip(reader.inputs, reader.access, strict=True) if pair[0] is not value]
        if any(_read_before(*pair, {}, before, places) is None for pair in others):
            return False
        value = reader.outputs[0]
    return True


def _view_of(reader: PointwiseOp, value: SSAValue, shape: tuple[Dim, ...]) -> ViewOp | None:
    """The view behind an operand that is read element by element, and by pointwise ops alone."""
    view = value.owner
    users = [use.operation for use in value.uses]
    if not isinstance(view, ViewOp) or not all(
        isinstance(one, PointwiseOp) and one.parent is reader.parent for one in users
    ):
        return None
    reads = [access for other, access in zip(reader.inputs, reader.access, strict=True) if other is value]
    in_place = dims(value.type) == shape and all(is_elementwise(access, shape) for access in reads)
    return view if in_place and isinstance(view.input.owner, Accumulating | PointwiseOp) else None


def _read_before(
    value: SSAValue,
    access: AccessAttr,
    sources: Mapping[SSAValue, ViewOp],
    before: tuple[Dim, ...],
    places: dict[str, Dim] | None,
) -> tuple[SSAValue, AccessAttr] | None:
    """What to read, and where, on the dimensions before the view."""
    if value in sources:
        return sources[value].input, identity_access(len(before))
    if places is not None:
        return value, access.substituted(places)
    moves = any(name[0] == "d" and name[1:].isdigit() for name in iteration_dims(access))
    return None if moves else (value, access)
