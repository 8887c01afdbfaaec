"""A concatenation of equally long parts of one tensor becomes one pointwise op, which may join what reads it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Region, SSAValue

from mlirt.dialects.fused.access import AccessAttr, iteration
from mlirt.dialects.fused.concat import ConcatOp
from mlirt.dialects.fused.fused_op import IndexOp, YieldOp, copy_region, is_identity, scalar_region
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.dialects.fused.scalar_builder import Scalars
from mlirt.dialects.fused.view import ViewOp
from mlirt.dialects.symbolic import Dim, substitute, symbols
from mlirt.dialects.tensor_types import dims, with_dims
from mlirt.passes.fusion.access_composition import compose
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

_MAX_BODIES = 4


@dataclass(frozen=True)
class FuseJoinedPartsPass(RulePass):
    """Compute pointwise functions of parts of one tensor in one op that counts the parts, in place of a concatenation.

    The parts are equally long, each is read by the concatenation alone, and they read the same tensors at places that
    are as far apart from part to part. So the rotation of queries and keys by their positions (rotary embedding), whose
    halves change places, is one launch with the products that it is for.

    Before:

        %a = fused.pointwise %x ["d0", "d1 + 4"] { -v } : tensor<2x4xf32>
        %b = fused.pointwise %x ["d0", "d1"] { v } : tensor<2x4xf32>
        %y = fused.concat %a, %b {axis = 1 : i64} : tensor<2x8xf32>

    After:

        %p = fused.pointwise %x ["d0", "-4*d1 + d2 + 4"] { d1 == 1 ? v : -v } : tensor<2x2x4xf32>
        %y = fused.view %p : (tensor<2x2x4xf32>) -> tensor<2x8xf32>
    """

    name = "fuse-joined-parts"

    @rule(op(ConcatOp).named("joined"))
    def count(self, m: Match, joined: ConcatOp) -> Outcome:
        parts = [value.owner for value in joined.inputs if isinstance(value.owner, PointwiseOp)]
        if len(parts) < max(2, len(joined.inputs)) or not all(map(_is_simple, parts)):
            return "not all parts are functions of each element that it alone reads"
        axis, lengths = joined.axis.value.data, [dims(one.outputs[0].type) for one in parts]
        reads = [[_behind_moves(*pair) for pair in zip(one.inputs, one.access, strict=True)] for one in parts]
        inputs = [read.value for read in reads[0]]
        if any([read.value for read in one] != inputs for one in reads) or any(one != lengths[0] for one in lengths):
            return "the parts are of several lengths, or read different tensors"
        length = lengths[0][axis]
        operands = [[one[k].access.indices() for one in reads] for k in range(len(inputs))]
        found = [_counted(places, axis, lengths[0]) for places in operands]
        accesses = [AccessAttr.of(one) for one in found if one is not None]
        bodies = _bodies(parts)
        if len(accesses) < len(found) or len(bodies) > _MAX_BODIES:
            return "the parts are not equally far apart, or differ in too many functions"
        before, after = lengths[0][:axis], lengths[0][axis + 1 :]
        shape = [*before, len(parts), *([] if length == 1 else [length]), *after]
        result, body = with_dims(joined.output.type, shape), _selected(parts, bodies, axis)
        moves = [move for one in reads for read in one for move in read.moves]
        made = m.insert(PointwiseOp(inputs, accesses, [result], body), *moves, *parts, joined)
        m.drop(*moves, *parts)
        return made if length == 1 else m.insert(ViewOp(made.outputs[0], joined.output.type))


@dataclass(frozen=True)
class _Read:
    """What a part reads, and where, once the slices and transposes in front of it that it alone has are gone."""

    value: SSAValue
    access: AccessAttr
    moves: tuple[PointwiseOp, ...] = ()


def _behind_moves(value: SSAValue, access: AccessAttr) -> _Read:
    move = value.owner
    if not isinstance(move, PointwiseOp) or not is_identity(move.body) or not value.has_one_use():
        return _Read(value, access)
    found = _behind_moves(move.inputs[0], compose(move.access.data[0], access))
    return _Read(found.value, found.access, (*found.moves, move))


def _is_simple(part: PointwiseOp) -> bool:
    alone = len(part.outputs) == 1 and part.outputs[0].has_one_use()
    return alone and not any(isinstance(inner, IndexOp) for inner in part.body.block.ops)


def _counted(places: Sequence[Sequence[Dim]], axis: int, lengths: Sequence[Dim]) -> list[Dim] | None:
    """One access of all parts, whose number is the iteration dimension `axis`; None where they lie at no rate."""
    has_inner, found = lengths[axis] != 1, list[Dim]()
    moved = {f"d{k}": iteration(k if k < axis else k + has_inner) for k in range(len(lengths))}
    moved[f"d{axis}"] = iteration(axis + 1) if has_inner else 0
    for indices in zip(*places, strict=True):
        step = indices[1] - indices[0]
        if symbols(step) & moved.keys() or any(one != indices[0] + step * k for k, one in enumerate(indices)):
            return None
        found.append(substitute(indices[0], moved) + step * iteration(axis))
    return found


def _bodies(parts: Sequence[PointwiseOp]) -> list[Region]:
    """The functions of the parts, each once."""
    found: list[Region] = []
    for one in parts:
        if not any(one.body.is_structurally_equivalent(known) for known in found):
            found.append(one.body)
    return found


def _selected(parts: Sequence[PointwiseOp], bodies: Sequence[Region], axis: int) -> Region:
    """The function of the part whose number is the position along `axis`, of functions that differ."""
    region = scalar_region([value.type for value in parts[0].body.block.args])
    block = region.block
    scalars = Scalars(block, IntegerType(32))
    result, *others = [copy_region(body, block.args, block.add_op)[0] for body in bodies]
    number = scalars.index(axis) if others else None
    for place, one in enumerate(parts):
        for body, value in zip(bodies[1:], others, strict=True):
            if number is not None and one.body.is_structurally_equivalent(body):
                result = scalars.select(scalars.compare("eq", number, scalars.constant(place)), value, result)
    block.add_op(YieldOp(operands=[[result]]))
    return region
