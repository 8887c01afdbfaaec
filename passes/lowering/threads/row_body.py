"""What a team of threads does for a row that it holds in registers: every inner loop unrolled, every load done once.

    reduce max (i) { x[r, i] }; reduce add (i) { exp(x[r, i] - m) }; parallel (i) { y[r, i] = exp(x[r, i] - m) / s }

becomes, for a thread with two vectors: two loads, maxima, exchange, exponentials, exchange, two stores.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReduceOp, StoreOp, stride_values
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.simt import WARP
from mlirt.passes.lowering.threads.code_writer import CodeWriter
from mlirt.passes.lowering.threads.row_plan import InnerLoop, RowPlan
from mlirt.passes.lowering.threads.team_body import TeamBody
from mlirt.passes.lowering.threads.thread_body import combine
from mlirt.passes.lowering.threads.vector_body import VectorBody

# A load: its buffer, its other indices and strides, and the number of the vector.
_Place = tuple[object, ...]


class RowBody(TeamBody):
    """`exists` says whether the team's row is one: teams after the last row do everything but store."""

    def __init__(
        self,
        code: CodeWriter,
        mapping: dict[SSAValue, SSAValue],
        member: SSAValue,
        plan: RowPlan,
        exists: SSAValue | None,
    ) -> None:
        super().__init__(code, mapping, member, plan.team, rereads=False, blocks=plan.blocks)
        self.plan, self.exists = plan, exists
        self.held: dict[_Place, list[SSAValue]] = {}

    def _store(self, op: StoreOp) -> None:
        """One member stores for all, where the row exists."""
        if self.exists is None:
            super()._store(op)
        else:
            self.code.when(self.exists, lambda: self.code.block.add_op(op.clone(self.mapping)))

    def parallel(self, op: ParallelOp) -> None:
        """Each member does its vectors."""
        for number in range(self.plan.count):
            self._vector(op, number).ops(op.body.block)

    def reduce(self, op: ReduceOp) -> None:
        """The member's own elements first, then those of the team."""
        code, kind, body = self.code, op.kind.data, op.body.block
        start, end = self._neutral(op), op.body.block.last_op
        assert end is not None
        found: list[SSAValue] = []
        for number in range(self.plan.count):
            vector = self._vector(op, number)
            vector.ops(body)
            values = vector.each(end.operands[0])
            if vector.inside is not None:
                values = [code.value(arith.SelectOp(vector.inside, value, start)) for value in values]
            found += values
        while len(found) > 1:
            pairs = [found[k : k + 2] for k in range(0, len(found), 2)]
            found = [reduce(lambda a, b: combine(code, kind, a, b), pair) for pair in pairs]
        total = self._exchanged(op, found[0], min(self.size, WARP))
        if self.size > WARP:
            total = self._across_warps(op, total)
        init = self.of(op.init)
        self.mapping[op.result] = total if init is start else combine(code, kind, init, total)

    def _vector(self, op: InnerLoop, number: int) -> _RowVector:
        """The code of a member's `number`-th vector in an inner loop."""
        code, plan = self.code, self.plan
        place = code.add(self.member, number * plan.team)
        beyond = (number + 1) * plan.team * plan.vector > plan.length
        inside = code.compare("slt", place, plan.length // plan.vector) if beyond else None
        self.mapping[op.body.block.args[0]] = place
        return _RowVector(self, op, number, inside)


class _RowVector(VectorBody):
    """A vector of a row; loads are shared with the other inner loops."""

    def __init__(self, row: RowBody, op: InnerLoop, number: int, inside: SSAValue | None) -> None:
        super().__init__(row.code, row.mapping, op, row.plan.vector)
        self.row, self.number, self.inside = row, number, inside

    def op(self, op: Operation) -> None:
        """Single elements of a row across memory are shared as well, and stored where the row exists."""
        if self.width == 1 and isinstance(op, LoadOp | StoreOp) and self.loop.differs(op):
            self._access(op)
        else:
            super().op(op)

    def _access(self, op: LoadOp | StoreOp) -> None:
        code, lanes = self.code, range(self.width)
        if isinstance(op, LoadOp):
            self._give(op.result, self._load(op))
            return
        writes = self._both(self.row.exists, self.inside)
        valid = None if writes is None else code.select(writes, self.width, 0)
        values = code.value(FragmentOp(self.each(op.value)))
        code.insert(StoreFragmentOp(values, self.of(op.buffer), self.index(op), lanes, valid=valid, wide=True))

    def _load(self, op: LoadOp) -> Sequence[SSAValue]:
        code, held = self.code, self.row.held
        steps = zip(op.indices, stride_values(op), strict=True)
        place: _Place = (
            self.of(op.buffer),
            *(("row", step) if at is self.loop.last else (self.of(at), step) for at, step in steps),
            self.number,
        )
        if place not in held:
            valid = None if self.inside is None else code.select(self.inside, self.width, 0)
            read = LoadFragmentOp(self.of(op.buffer), self.index(op), range(self.width), valid=valid, wide=True)
            loaded = code.value(read)
            loaded.name_hint = op.result.name_hint
            held[place] = [code.value(FragmentElementOp(loaded, k)) for k in range(self.width)]
        return held[place]

    def _both(self, a: SSAValue | None, b: SSAValue | None) -> SSAValue | None:
        if a is None or b is None:
            return b if a is None else a
        return self.code.both(a, b)


__all__ = ["RowBody"]
