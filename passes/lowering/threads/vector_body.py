"""What one thread does for several neighbouring iterations, with wide accesses where memory is contiguous.

A load gives a fragment; every op that differs from element to element is done once for each, and the others once. So
a reduction becomes a loop that carries one total per element:

    %t = kernel.reduce max (%k) in (%n) { load x[%k, %c] }    for %k { fragment of x[%k, 8 * %c ..]; 8 maxima }
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, Region, SSAValue

from mlirt.dialects.kernel.core import LoadOp, ParallelOp, ReduceOp, StoreOp
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.passes.lowering.threads.code_writer import CodeWriter
from mlirt.passes.lowering.threads.thread_body import ThreadBody, combine, is_zero
from mlirt.passes.lowering.threads.vector_width import VectorLoop


class VectorBody(ThreadBody):
    """`elements[k]` has the copies of values that differ, for the k-th iteration of a vector."""

    def __init__(
        self, code: CodeWriter, mapping: dict[SSAValue, SSAValue], outer: ParallelOp | ReduceOp, width: int
    ) -> None:
        super().__init__(code, mapping)
        self.loop, self.width = VectorLoop.of(outer), width
        self.elements: list[dict[SSAValue, SSAValue]] = [{} for _ in range(width)]

    def ops(self, block: Block) -> list[SSAValue]:
        if block is self.loop.outer.body.block:
            self._start()
        return super().ops(block)

    def _start(self) -> None:
        code, last = self.code, self.loop.last
        start = code.mul(self.of(last), self.width)
        start.name_hint = last.name_hint or "start"
        self.mapping[last] = start
        ops = self.loop.outer.body.block.walk()
        if any(last in op.operands for op in ops if not self.loop.is_contiguous(op)):
            for k, own in enumerate(self.elements):
                own[last] = code.add(start, k)

    def op(self, op: Operation) -> None:
        """Copy an op, once for each element where that makes a difference."""
        if isinstance(op, LoadOp | StoreOp) and self.loop.is_contiguous(op):
            self._access(op)
        elif isinstance(op, LoadOp) and not self.loop.differs(op):
            self._load_once(op)
        elif not self.loop.differs(op):
            super().op(op)
        elif isinstance(op, ReduceOp):
            self._reduce(op)
        elif isinstance(op, scf.IfOp):
            load = self.loop.guarded_load(op)
            if load is None:
                self._choose(op)
            else:
                self._load_where(op, load)
        elif isinstance(op, scf.ForOp):
            self._repeat(op)
        else:
            for own in self.elements:
                copy = self.code.insert(op.clone({**self.mapping, **own}))
                own.update(zip(op.results, copy.results, strict=True))

    def of(self, value: SSAValue) -> SSAValue:
        """The copy of a value; of one that differs the first one, for an index with a stride of 0."""
        return self.mapping.get(value, self.elements[0].get(value, value))

    def _load_once(self, op: LoadOp) -> None:
        """A load that all elements share. An index with a stride of 0 may differ: any of its copies will do."""
        copy = self.code.insert(op.clone({one: self.of(one) for one in op.operands}))
        self.mapping[op.result] = copy.result

    def each(self, value: SSAValue) -> list[SSAValue]:
        """The copies of a value."""
        return [own.get(value, self.of(value)) for own in self.elements]

    def _give(self, value: SSAValue, copies: Sequence[SSAValue]) -> None:
        for own, copy in zip(self.elements, copies, strict=True):
            own[value] = copy

    def _load_where(self, op: scf.IfOp, load: LoadOp) -> None:
        """A load under a condition, without a branch; where it does not hold, the other value."""
        code = self.code
        condition, loaded = self.read_where(op, load, self.width)
        values = [code.value(FragmentElementOp(loaded, k)) for k in range(self.width)]
        other = op.false_region.block.last_op
        assert other is not None
        if not is_zero(other.operands[0]):
            others = self.each(other.operands[0])
            pairs = zip(values, others, strict=True)
            values = [code.value(arith.SelectOp(condition, value, other)) for value, other in pairs]
        self._give(op.results[0], values)

    def _access(self, op: LoadOp | StoreOp) -> None:
        code, offsets = self.code, range(self.width)
        index, buffer = self.index(op), self.of(op.buffer)
        if isinstance(op, LoadOp):
            loaded = code.value(LoadFragmentOp(buffer, index, offsets, wide=True))
            loaded.name_hint = op.result.name_hint
            self._give(op.result, [code.value(FragmentElementOp(loaded, k)) for k in offsets])
        else:
            values = code.value(FragmentOp(self.each(op.value)))
            code.insert(StoreFragmentOp(values, buffer, index, offsets, wide=True))

    def _reduce(self, op: ReduceOp) -> None:
        """One total per element."""
        body = op.body.block
        end = body.last_op
        assert end is not None

        def step(carried: list[SSAValue]) -> list[SSAValue]:
            self.ops(body)
            found = zip(carried, self.each(end.operands[0]), strict=True)
            return [combine(self.code, op.kind.data, total, value) for total, value in found]

        self._give(op.result, self._loops(self.all_of(op.extents), list(body.args), self.each(op.init), step))

    def _repeat(self, op: scf.ForOp) -> None:
        """A loop whose carried values become one per element where they differ."""
        body, end = op.body.block, op.body.block.last_op
        assert end is not None
        names = list(body.args[1:])

        def step(index: SSAValue, carried: list[SSAValue]) -> list[SSAValue]:
            index.name_hint = body.args[0].name_hint
            self.mapping[body.args[0]] = index
            self._gather(names, carried)
            self.ops(body)
            return self._spread(op.results, end.operands)

        bounds = [self.of(bound) for bound in (op.lb, op.ub, op.step)]
        first, last, every = bounds
        self._gather(op.results, self.code.loop(first, last, every, self._spread(op.results, op.iter_args), step))

    def _gather(self, results: Sequence[SSAValue], values: Sequence[SSAValue]) -> None:
        """The opposite of `_spread`."""
        rest = list(values)
        for result in results:
            if result in self.loop.varying:
                self._give(result, rest[: self.width])
                rest = rest[self.width :]
            else:
                self.mapping[result] = rest.pop(0)

    def _choose(self, op: scf.IfOp) -> None:
        """A condition that all elements share; results that differ become one per element."""
        regions: list[Region] = []
        types = [
            result.type
            for result in op.results
            for _ in (range(self.width) if result in self.loop.varying else range(1))
        ]
        for region in op.regions:
            new = Block()
            end = region.block.last_op if region.blocks else None
            with self.code.inside(new):
                if end is not None:
                    self.ops(region.block)
                    self.code.insert(scf.YieldOp(*self._spread(op.results, end.operands)))
            regions.append(Region(new) if end is not None else Region())
        made = self.code.insert(scf.IfOp(self.of(op.cond), types, regions[0], regions[1]))
        self._gather(op.results, list(made.results))

    def _spread(self, results: Sequence[SSAValue], values: Sequence[SSAValue]) -> list[SSAValue]:
        spread: list[SSAValue] = []
        for result, value in zip(results, values, strict=True):
            spread += self.each(value) if result in self.loop.varying else [self.of(value)]
        return spread
