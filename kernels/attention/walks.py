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

    Operands may be parts of one tensor, so each has its own `role`; empty for that of the tensor.
    """

    value: SSAValue
    batch: tuple[Dim, ...]
    query: Dim
    key: Dim
    depth: Dim
    column: Dim
    offset: Dim = 0
    role: str = ""

    @staticmethod
    def of(one: Affine, batch_rank: int, role: str = "") -> Walk:
        """The walk of an access over all iteration dimensions of attention."""
        query, key, depth, column = one.steps[batch_rank:]
        return Walk(one.value, one.steps[:batch_rank], query, key, depth, column, one.offset, role)

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
        batch_rank, places = op.batch_rank, lowering.placements
        roles = chain(_ROLES, repeat(""))
        reads = [
            Walk.of(affine(value, places[value], access, batch_rank + 4), batch_rank, role)
            for value, access, role in zip(op.operands, op.access, roles, strict=False)
        ]
        query, key, values, *extras = reads
        return Walks(query, key, values, tuple(extras), _result(op, places[op.output].strides))


def _result(op: AttentionOp, steps: Sequence[Dim]) -> Walk:
    natural = dict(zip(op.axes(), steps, strict=True))
    *batch, query, column = (natural[axis] for axis in range(len(steps)))
    return Walk(op.output, tuple(batch), query, 0, 0, column)
