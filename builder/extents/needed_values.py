"""The part of a kernel that the addresses of its accesses to buffers depend on."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from mlirt.builder.extents.kernel_reader import is_on_chip
from mlirt.builder.extents.touched import Touched, touched_by
from mlirt.dialects.kernel.core import FuncOp


class NeededValues:
    """The ops that touch buffers, what their addresses follow from, and the loops and branches around both."""

    def __init__(self, kernel: FuncOp) -> None:
        self.values: set[SSAValue] = set()
        self._ops: set[Operation] = set()
        self._todo: list[SSAValue] = []
        for op in kernel.body.walk():
            found = [one for one in touched_by(op) if not is_on_chip(one.buffer)]
            if found:
                self._add_op(op)
                self._todo += [value for one in found for value in _numbers(one)]
        while self._todo:
            value = self._todo.pop()
            if value not in self.values:
                self.values.add(value)
                self._todo += self._sources(value)

    def __contains__(self, op: Operation) -> bool:
        return op in self._ops

    def _add_op(self, op: Operation) -> None:
        """With everything around it."""
        around: Operation | None = op
        while around is not None and not isinstance(around, FuncOp) and around not in self._ops:
            self._ops.add(around)
            if isinstance(around, scf.ForOp):
                self._todo += [around.lb, around.ub, around.step]
            elif isinstance(around, scf.IfOp):
                self._todo.append(around.cond)
            around = around.parent_op()

    def _sources(self, value: SSAValue) -> Iterator[SSAValue]:
        owner = value.owner
        if isinstance(owner, Block):
            loop = owner.parent_op()
            if isinstance(loop, scf.ForOp):
                self._add_op(loop)
                yield from _carried(loop, owner.args.index(value) - 1)
            return
        self._add_op(owner)
        if isinstance(owner, scf.ForOp):
            yield from _carried(owner, owner.results.index(value))
        elif isinstance(owner, scf.IfOp):
            for region in owner.regions:
                if region.blocks and isinstance(last := region.block.last_op, scf.YieldOp):
                    yield last.operands[owner.results.index(value)]
        elif not owner.regions:
            yield from owner.operands


def _carried(loop: scf.ForOp, i: int) -> Iterator[SSAValue]:
    """What a number that a loop carries follows from; nothing for its iteration, -1."""
    if i >= 0:
        last = loop.body.block.last_op
        assert isinstance(last, scf.YieldOp)
        yield from (loop.iter_args[i], last.operands[i], loop.body.block.args[i + 1])


def _numbers(touched: Touched) -> Iterator[SSAValue]:
    guarded = touched.guarded
    factors = [
        *(factor for term in touched.terms for factor in term),
        *(factor for run in touched.runs for factor in (*run.counts, run.step)),
        *(() if guarded is None else (guarded.valid, guarded.stride)),
        touched.only_where,
    ]
    yield from (one for one in factors if isinstance(one, SSAValue))
