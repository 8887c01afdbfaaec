"""The operands of attention as strides along its loops: batch dimensions, queries, keys, depth and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.symbolic import Dim
from mlirt.passes.lowering.loops.loop_nest import Affine, affine
from mlirt.passes.lowering.lowering import Lowering


@dataclass(frozen=True)
class Walk:
    """The element of `value` at `offset` plus the sum of index times step, in elements."""

    value: SSAValue
    batch: tuple[Dim, ...]
    query: Dim
    key: Dim
    depth: Dim
    column: Dim
    offset: Dim = 0

    @staticmethod
    def of(one: Affine, batch_rank: int) -> Walk:
        """The walk of an access over all iteration dimensions of attention."""
        query, key, depth, column = one.steps[batch_rank:]
        return Walk(one.value, one.steps[:batch_rank], query, key, depth, column, one.offset)


@dataclass(frozen=True)
class Walks:
    """How an attention op goes through the memory of its operands and its result."""

    query: Walk
    key: Walk
    values: Walk
    extras: tuple[Walk, ...]
    out: Walk

    @staticmethod
    def of(op: AttentionOp, lowering: Lowering) -> Walks:
        batch_rank, places = op.batch_rank, lowering.placements
        reads = [
            Walk.of(affine(value, places[value], access, batch_rank + 4), batch_rank)
            for value, access in zip(op.operands, op.access, strict=True)
        ]
        query, key, values, *extras = reads
        return Walks(query, key, values, tuple(extras), _result(op, places[op.output].strides))


def _result(op: AttentionOp, steps: Sequence[Dim]) -> Walk:
    natural = dict(zip(op.axes(), steps, strict=True))
    *batch, query, column = (natural[axis] for axis in range(len(steps)))
    return Walk(op.output, tuple(batch), query, 0, 0, column)
