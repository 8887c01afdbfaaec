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
from mlirt.passes.fusion.pointwise_absorption import absorb
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
        for one in parts:
            _take_move(one)
        if len(parts) < max(2, len(joined.inputs)) or not all(map(_is_simple, parts)):
            return "not all parts are functions of each element that it alone reads"
        axis, first = joined.axis.value.data, parts[0]
        same = all(list(one.inputs) == list(first.inputs) for one in parts)
        if not same or any(dims(one.outputs[0].type) != dims(first.outputs[0].type) for one in parts):
            return "the parts are of several lengths, or read different tensors"
        length = dims(first.outputs[0].type)[axis]
        lists = [[one.access.data[k].indices() for one in parts] for k in range(len(first.inputs))]
        found = [_counted(places, axis, length) for places in lists]
        accesses = [AccessAttr.of(one) for one in found if one is not None]
        bodies = _bodies(parts)
        if len(accesses) < len(found) or len(bodies) > _MAX_BODIES:
            return "the parts are not equally far apart, or differ in too many functions"
        before, after = dims(joined.output.type)[:axis], dims(joined.output.type)[axis + 1 :]
        shape = [*before, len(parts), *([] if length == 1 else [length]), *after]
        body = _selected(parts, axis)
        made = PointwiseOp(list(first.inputs), accesses, [with_dims(joined.output.type, shape)], body)
        m.insert(made, *parts, joined)
        m.drop(*parts)
        return made if length == 1 else m.insert(ViewOp(made.outputs[0], joined.output.type))


def _take_move(part: PointwiseOp) -> None:
    """Let a part read what a slice or transpose in front of it reads, that it alone has."""
    while True:
        producers = [value.owner for value in part.inputs if value.has_one_use()]
        moves = [one for one in producers if isinstance(one, PointwiseOp) and is_identity(one.body)]
        near = next((one for one in moves if one.parent is part.parent), None)
        if near is None:
            return
        absorb(near, part)


def _is_simple(part: PointwiseOp) -> bool:
    alone = len(part.outputs) == 1 and part.outputs[0].has_one_use()
    return alone and not any(isinstance(inner, IndexOp) for inner in part.body.block.ops)


def _counted(places: Sequence[Sequence[Dim]], axis: int, length: Dim) -> list[Dim] | None:
    """One access of all parts, whose number is the iteration dimension `axis`; None where they lie at no rate."""
    rank_, found = 1 + max([axis, *(int(n[1:]) for p in places for i in p for n in _dims_in(i))]), list[Dim]()
    inner: Dim = 0 if length == 1 else iteration(axis + 1)
    moved = {f"d{k}": iteration(k if k < axis else k + (length != 1)) for k in range(rank_)} | {f"d{axis}": inner}
    for indices in zip(*places, strict=True):
        step = indices[1] - indices[0]
        if _dims_in(step) or any(one != indices[0] + step * k for k, one in enumerate(indices)):
            return None
        found.append(substitute(indices[0], moved) + step * iteration(axis))
    return found


def _dims_in(index: Dim) -> list[str]:
    return [name for name in symbols(index) if name[0] == "d" and name[1:].isdigit()]


def _bodies(parts: Sequence[PointwiseOp]) -> list[Region]:
    """The functions of the parts, each once."""
    found: list[Region] = []
    for one in parts:
        if not any(one.body.is_structurally_equivalent(known) for known in found):
            found.append(one.body)
    return found


def _selected(parts: Sequence[PointwiseOp], axis: int) -> Region:
    """The function of the part whose number is the position along `axis`."""
    region = scalar_region([value.type for value in parts[0].body.block.args])
    block, different = region.block, _bodies(parts)
    scalars = Scalars(block, IntegerType(32))
    values: list[SSAValue] = [copy_region(body, block.args, block.add_op)[0] for body in different]
    result = values[0]
    number = scalars.index(axis) if len(different) > 1 else None
    for place, one in enumerate(parts):
        value = next(v for body, v in zip(different, values, strict=True) if one.body.is_structurally_equivalent(body))
        if number is not None and value is not values[0]:
            result = scalars.select(scalars.compare("eq", number, scalars.constant(place)), value, result)
    block.add_op(YieldOp(operands=[[result]]))
    return region
