"""The operands of attention as strides along its loops: batch dimensions, queries, keys, depth and columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, repeat

from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.lib.loops.loop_nest import Affine, affine
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

_ROLES = ("query", "key", "value")


@dataclass(frozen=True)
class Walk:
    """The element of `value` at `offset` plus the sum of index times step, in elements.

    Operands may be parts of one tensor, so each has its own `role`; empty for that of the tensor. An extra that is read
    by rows and columns goes `query_row` and `key_row` further at the end of each row, which are `widths` long.
    """

    value: SSAValue
    batch: tuple[Dim, ...]
    query: Dim
    key: Dim
    depth: Dim
    column: Dim
    offset: Dim = 0
    role: str = ""
    query_row: Dim = 0
    key_row: Dim = 0
    widths: tuple[int, int] = (1, 1)

    @staticmethod
    def of(one: Affine, batch_rank: int, role: str = "", widths: tuple[int, int] | None = None) -> Walk:
        """The walk of an access over all iteration dimensions of attention.

        The step along columns is one for all places; at the end of a row it has gone too far by as many as there are.
        """
        batch, (query, key, depth, column, *rows) = one.steps[:batch_rank], one.steps[batch_rank:]
        if widths is None or not any(rows):
            return Walk(one.value, batch, query, key, depth, column, one.offset, role)
        query_row, query_column, key_row, key_column = rows
        return Walk(
            one.value,
            batch,
            query + query_column,
            key + key_column,
            depth,
            column,
            one.offset,
            role,
            query_row - query_column * widths[0],
            key_row - key_column * widths[1],
            widths,
        )

    def buffer(self, k: KernelBuilder) -> SSAValue:
        """The memory that is walked through, from the first element on."""
        return self.named(k, k.buffer(self.value, self.offset))

    def named(self, k: KernelBuilder, argument: SSAValue) -> SSAValue:
        """An argument that is what is walked through."""
        return k.named(argument, self.role) if self.role else argument


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
        batch_rank, places, widths = op.batch_rank, lowering.placements, op.picture_widths()
        roles = chain(_ROLES, repeat(""))
        axes = batch_rank + (4 if widths is None else 8)
        reads = [
            Walk.of(affine(value, places[value], access, axes), batch_rank, role, widths)
            for value, access, role in zip(op.operands, op.access, roles, strict=False)
        ]
        query, key, values, *extras = reads
        return Walks(query, key, values, tuple(extras), _result(op, places[op.output].strides))


def _result(op: AttentionOp, steps: Sequence[Dim]) -> Walk:
    natural = dict(zip(op.axes(), steps, strict=True))
    *batch, query, column = (natural[axis] for axis in range(len(steps)))
    return Walk(op.output, tuple(batch), query, 0, 0, column)
