"""A concatenation that begins with all tensors of an earlier one reads that one."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Block, SSAValue

from mlirt.dialects.fused.concat import ConcatOp
from mlirt.passes.rules import Match, Outcome, RulePass, op, rule

Beginning = tuple[int, tuple[SSAValue, ...]]
"""The axis of a concatenation, and the first two tensors."""


@dataclass(frozen=True)
class NestConcatenationsPass(RulePass):
    """Join the result of an earlier concatenation and what is new, where a network joins all tensors so far again.

    Densely connected layers read all results before them, so that the n-th one joins n tensors. Two are left, the
    earlier result and the new one; the new one has no other reader, so that its producer may write it in place, and so
    may be the earlier result.

    Before:

        %a = fused.concat %x, %y {axis = 1 : i64} : ...
        %b = fused.concat %x, %y, %z {axis = 1 : i64} : ...

    After:

        %a = fused.concat %x, %y {axis = 1 : i64} : ...
        %b = fused.concat %a, %z {axis = 1 : i64} : ...
    """

    name = "nest-concatenations"

    @rule(op(ConcatOp).named("outer"))
    def nest(self, m: Match, outer: ConcatOp) -> Outcome:
        inputs = tuple(outer.inputs)
        for inner, parts in reversed(m.analysis(_joined).get(_beginning(outer), ())):
            begins = len(parts) < len(inputs) and inputs[: len(parts)] == parts
            if begins and inner.output.first_use is not None and m.place(inner) < m.place(outer):
                outer.operands = [inner.output, *inputs[len(parts) :]]
                return outer
        return None


def _joined(block: Block) -> dict[Beginning, list[tuple[ConcatOp, tuple[SSAValue, ...]]]]:
    """The concatenations of a block that begin alike, with what they join, those of few tensors first."""
    found: dict[Beginning, list[tuple[ConcatOp, tuple[SSAValue, ...]]]] = {}
    for one in block.ops:
        if isinstance(one, ConcatOp):
            found.setdefault(_beginning(one), []).append((one, tuple(one.inputs)))
    for alike in found.values():
        alike.sort(key=lambda pair: len(pair[1]))
    return found


def _beginning(one: ConcatOp) -> Beginning:
    return one.axis.value.data, tuple(one.inputs[:2])


__all__ = ["NestConcatenationsPass"]
