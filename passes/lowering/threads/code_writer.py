"""Writes what the threads of a block do: loops between any bounds, branches, and products of sizes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Region, SSAValue

from mlirt.kernels.lib.builder.block_writer import BlockWriter
from mlirt.kernels.lib.builder.index_arithmetic import known

_INDEX = IndexType()


class CodeWriter(BlockWriter):
    """Adds loops between any bounds, and branches."""

    def loop(
        self,
        start: SSAValue | int,
        stop: SSAValue | int,
        step: SSAValue | int,
        carried: Sequence[SSAValue],
        body: Callable[[SSAValue, list[SSAValue]], Sequence[SSAValue]],
    ) -> list[SSAValue]:
        """`body(i, carried)` for each i, in order; returns what the last one gave."""
        block = Block(arg_types=[_INDEX, *(value.type for value in carried)])
        first, last, every = (self.index(bound) for bound in (start, stop, step))
        with self.inside(block):
            self.insert(scf.YieldOp(*body(block.args[0], list(block.args[1:]))))
        return list(self.insert(scf.ForOp(first, last, every, list(carried), block)).results)

    def when(self, condition: SSAValue, then: Callable[[], None]) -> None:
        """Do something only where an i1 holds."""
        holds = known(condition)
        if holds is not None:
            return then() if holds else None
        block = Block()
        with self.inside(block):
            then()
            self.insert(scf.YieldOp())
        self.insert(scf.IfOp(condition, [], Region(block)))

    def product(self, factors: Sequence[SSAValue]) -> SSAValue:
        """The product of sizes."""
        result = self.constant(1)
        for factor in factors:
            result = self.mul(result, factor)
        return result
