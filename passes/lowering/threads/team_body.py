"""What a team of threads does together for one iteration: a warp, or a whole block.

The threads of a team all do what stands outside of inner loops, each with the same values; they share out the
iterations of inner loops, and combine what each of them has reduced in a fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, i32, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from mlirt.dialects.combine import identity
from mlirt.dialects.kernel.cluster import ClusterBarrierOp, RemoteSharedOp
from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReduceOp, StoreOp
from mlirt.dialects.kernel.simt import WARP, BarrierOp, SharedOp, ShuffleOp
from mlirt.dialects.tensor_types import element_name, is_float
from mlirt.passes.lowering.threads.code_writer import CodeWriter
from mlirt.passes.lowering.threads.row_plan import InnerLoop
from mlirt.passes.lowering.threads.thread_body import ThreadBody, combine, signless
from mlirt.passes.lowering.threads.vector_body import VectorBody

NO_WIDTHS: Mapping[Operation, int] = {}


@dataclass(frozen=True)
class _Started:
    """A reduction and the number that it starts with."""

    op: ReduceOp
    start: SSAValue


class TeamBody(ThreadBody):
    """`member` is the number of a thread in its team of `size`; a team larger than a warp is a block, or the `blocks`
    of a cluster.
    """

    def __init__(
        self,
        code: CodeWriter,
        mapping: dict[SSAValue, SSAValue],
        member: SSAValue,
        size: int,
        rereads: bool,
        blocks: int = 1,
        widths: Mapping[Operation, int] = NO_WIDTHS,
    ) -> None:
        super().__init__(code, mapping)
        self.member, self.size, self.rereads, self.blocks, self.widths = member, size, rereads, blocks, widths
        self._scratch: dict[Attribute, SSAValue] = {}
        self._done: set[Operation] = set()

    def op(self, op: Operation) -> None:
        """As one thread does, except that one member stores for all."""
        if isinstance(op, StoreOp):
            first = self.code.compare("eq", self.member, 0)
            self.code.when(first, lambda: self._store(op))
            self._order()
        else:
            super().op(op)

    def _store(self, op: StoreOp) -> None:
        self.code.insert(op.clone(self.mapping))

    def _order(self) -> None:
        """What one member wrote, another may read from now on."""
        if self.rereads:
            self.code.insert(BarrierOp())

    def parallel(self, op: ParallelOp) -> None:
        """Each member takes every `size`-th iteration, or vector of them."""
        extents = self._extents(op)

        def step(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            self._values(op, number, extents)
            return []

        self.code.loop(self.member, self.code.product(extents), self.size, [], step)
        self._order()

    def _extents(self, op: InnerLoop) -> list[SSAValue]:
        """How often an inner loop runs, with as many neighbours at once as a member takes."""
        extents, width = self.all_of(op.extents), self.widths.get(op, 1)
        return extents if width == 1 else [*extents[:-1], self.code.div(extents[-1], width)]

    def _values(self, op: InnerLoop, number: SSAValue, extents: Sequence[SSAValue]) -> list[SSAValue]:
        """Do an iteration of an inner loop; what it yields, for each of the neighbours."""
        width, block = self.widths.get(op, 1), op.body.block
        self._bind(block, self.code.split(number, extents))
        if width == 1:
            return ThreadBody(self.code, self.mapping).ops(block)
        vector = VectorBody(self.code, self.mapping, op, width)
        vector.ops(block)
        last = block.last_op
        return vector.each(last.operands[0]) if last is not None and last.operands else []

    def _bind(self, block: Block, indices: Sequence[SSAValue]) -> None:
        for name, index in zip(block.args, indices, strict=True):
            index.name_hint = index.name_hint or name.name_hint
            self.mapping[name] = index

    def reduce(self, op: ReduceOp) -> None:
        """Each member combines every `size`-th value, or vector, then the members' results are combined.

        Reductions behind one another over the same elements, none of which needs another one, share a loop.
        """
        if op in self._done:
            return
        group, extents, width = self._side_by_side(op), self._extents(op), self.widths.get(op, 1)

        def step(number: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            found = [(one.op.kind.data, value) for one in group for value in self._values(one.op, number, extents)]
            pairs = zip(carried, found, strict=True)
            return [combine(self.code, kind, before, value) for before, (kind, value) in pairs]

        starts = [one.start for one in group for _ in range(width)]
        totals = self.code.loop(self.member, self.code.product(extents), self.size, starts, step)
        for number, one in enumerate(group):
            self._finish(one, totals[number * width : (number + 1) * width])

    def _side_by_side(self, op: ReduceOp) -> list[_Started]:
        """The reduction and those behind it that can share its loop."""
        group, results = [_Started(op, self._neutral(op))], {op.result}
        other = op.next_op
        while isinstance(other, ReduceOp) and list(other.extents) == list(op.extents):
            needs = any(value in results for inner in other.walk() for value in inner.operands)
            if needs or self.widths.get(other, 1) != self.widths.get(op, 1):
                break
            group.append(_Started(other, self._neutral(other)))
            results.add(other.result)
            other = other.next_op
        self._done.update(one.op for one in group)
        return group

    def _finish(self, one: _Started, totals: list[SSAValue]) -> None:
        """Combine what the lanes of a member, and then the members, have of a reduction."""
        op, kind = one.op, one.op.kind.data
        while len(totals) > 1:
            totals = [combine(self.code, kind, a, b) for a, b in zip(totals[::2], totals[1::2], strict=True)]
        (total,) = totals
        total = self._exchanged(op, total, min(self.size, WARP))
        if self.size > WARP:
            total = self._across_warps(op, total)
        init = self.of(op.init)
        self.mapping[op.result] = total if init is one.start else combine(self.code, kind, init, total)

    def _neutral(self, op: ReduceOp) -> SSAValue:
        type_ = op.init.type
        name = "int64" if isinstance(type_, IndexType) else element_name(type_)
        number = identity(op.kind.data, name)
        if isinstance(type_, IndexType) or is_float(type_):
            return self.code.constant(number, type_)
        plain = self.code.constant(number, signless(type_))
        return plain if plain.type == type_ else self.code.value(arith.BitcastOp(plain, op.init.type))

    def _exchanged(self, op: ReduceOp, total: SSAValue, count: int) -> SSAValue:
        """Neighbours exchange what they have: in the end each has the combination of `count` threads."""
        code = self.code
        mask = count // 2
        while mask:
            moved = code.value(ShuffleOp(self._movable(total), mask))
            total = combine(code, op.kind.data, total, self._typed(moved, op.init.type))
            mask //= 2
        return total

    def _across_warps(self, op: ReduceOp, total: SSAValue) -> SSAValue:
        """One result per warp goes through shared memory, and each warp combines them all."""
        code, warps = self.code, self.size // self.blocks // WARP
        value = self._movable(total)
        scratch = self._shared(value.type, warps)
        first_lane = code.compare("eq", code.rem(self.member, WARP), 0)
        code.insert(BarrierOp())  # an earlier reduction may still be read
        warp = code.div(self.member, WARP)
        if self.blocks > 1:
            warp = code.rem(warp, warps)
        code.when(first_lane, lambda: code.block.add_op(StoreOp(value, scratch, [warp], [1])))
        code.insert(BarrierOp())
        partial = code.value(LoadOp(scratch, [code.rem(self.member, warps)], [1]))
        total = self._exchanged(op, self._typed(partial, op.init.type), warps)
        return total if self.blocks == 1 else self._across_blocks(op, total)

    def _across_blocks(self, op: ReduceOp, total: SSAValue) -> SSAValue:
        """One result per block of a cluster: each thread reads them all, and combines them in the order of the blocks.

        Every reduction has memory of its own, so that nobody has to wait until all have read an earlier one.
        """
        code, value = self.code, self._movable(total)
        kept = self._at_start(SharedOp(1, value.type), "of_block")
        here, one = code.constant(0), code.compare("eq", code.rem(self.member, self.size // self.blocks), 0)
        code.when(one, lambda: code.block.add_op(StoreOp(value, kept, [here], [1])))
        code.insert(ClusterBarrierOp())
        remote = [code.value(RemoteSharedOp(kept, code.constant(rank))) for rank in range(self.blocks)]
        found = [self._typed(code.value(LoadOp(one, [here], [1])), op.init.type) for one in remote]
        return reduce(lambda a, b: combine(code, op.kind.data, a, b), found)

    def _shared(self, element: Attribute, count: int) -> SSAValue:
        """Shared memory at the start of the kernel, one piece for each type."""
        if element not in self._scratch:
            self._scratch[element] = self._at_start(SharedOp(count, element), "partial")
        return self._scratch[element]

    def _at_start(self, op: SharedOp, name: str) -> SSAValue:
        first = self.code.top.first_op
        assert first is not None
        self.code.top.insert_op_before(op, first)
        op.result.name_hint = name
        return op.result

    def _movable(self, value: SSAValue) -> SSAValue:
        """A value as a 32-bit or 64-bit number, which threads can exchange."""
        code, type_ = self.code, value.type
        if isinstance(type_, IndexType):
            return code.to_integer(value, i64)
        if is_float(type_):
            return value
        plain = signless(type_)
        bits = value if type_ == plain else code.value(arith.BitcastOp(value, plain))
        return bits if plain.width.data >= 32 else code.value(arith.ExtUIOp(bits, i32))

    def _typed(self, value: SSAValue, type_: Attribute) -> SSAValue:
        """The opposite of `_movable`."""
        code = self.code
        if value.type == type_:
            return value
        if isinstance(type_, IndexType):
            return code.from_integer(value)
        plain = signless(type_)
        if plain.width.data < 32:
            value = code.value(arith.TruncIOp(value, plain))
        return value if type_ == plain else code.value(arith.BitcastOp(value, type_))
