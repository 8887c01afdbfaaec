"""A normalisation: per row its reductions one after the other, and then the elements, all in one launch."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import Region, SSAValue

from mlirt.dialects import symbolic
from mlirt.dialects.combine import ReduceKind, identity
from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.integer_list import integers
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import element_name
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.language import Value, build, kernel, value_of
from mlirt.kernels.lib.language.words import Box, constant, inline, parallel, place, reduction
from mlirt.kernels.lib.loops.block_lanes import number
from mlirt.kernels.lib.loops.loop_nest import Affine, Nest, NestCode, affine, collapse
from mlirt.kernels.lib.loops.rows import whole
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering
from mlirt.kernels.rows.one_pass import PARTS, reads_once


def lower(op: NormalizationOp, lowering: Lowering) -> bool:
    """`parallel (rows) { reduce (row) { .. }; ..; parallel (row) { the body; store } }`; reduced rows store once."""
    Rows(op, lowering).write()
    return True


class Rows:
    """The kernel of one op."""

    def __init__(self, op: NormalizationOp, lowering: Lowering) -> None:
        self.op = op
        self.k: KernelBuilder = lowering.kernel("normalization")
        self.is_reduced = bool(op.reduced.dims())
        nest, border = self.nest_of(op, lowering)
        self.code = NestCode(self.k, nest)
        self.outer, row = self.code.split(border)
        self.row = row or [1]
        self.depth = len(self.code.nest.extents) - len(row)
        self.is_one_pass = self.k.is_cuda and reads_once(op, self.row) and not self._is_held(lowering)

    def _is_held(self, lowering: Lowering) -> bool:
        """Whether threads hold a row, which is read once then."""
        rows = typical(product(self.outer), typical_values(lowering.block))
        return lowering.target.gpu.holds_rows(rows, prod(one for one in self.row if isinstance(one, int)))

    @staticmethod
    def nest_of(op: NormalizationOp, lowering: Lowering) -> tuple[Nest, int]:
        """The loops over rows and in them, with the results as the last operands, and the first dimension of a row."""
        space, places, axes = op.space(), lowering.placements, integers(op.axes)
        order = [*(axis for axis in range(len(space)) if axis not in axes), *axes]
        border = len(space) - len(axes)
        inputs = [
            affine(value, places[value], one, len(space)) for value, one in zip(op.inputs, op.access, strict=True)
        ]
        results = [whole(value, lowering) for value in op.results]
        beyond = (0,) * len(op.reduced.dims())
        results = [Affine(one.value, (*one.steps, *beyond), one.offset) for one in results]
        operands = [
            Affine(one.value, tuple(one.steps[axis] for axis in order), one.offset) for one in (*inputs, *results)
        ]
        nest = Nest.of([space[axis] for axis in order], operands).ordered(-1, 0, border)
        nest = nest.ordered(0 if op.reduced.dims() else -1, border)
        return collapse(nest, borders=frozenset({border})), border

    def write(self) -> None:
        """The kernel and its launch."""
        build(self.k, self._rows)
        self.k.finish(self.op)

    @kernel
    def _rows(self) -> None:
        """`for each row: totals = its reductions, one after the other; y = body(x, totals)`."""
        op, code = self.op, self.code
        inputs = range(len(op.inputs))
        for loops in parallel(self.outer):
            here = loops[: self.depth]
            shared = [code.load(one, here) if op.is_whole_row(one) and self.is_used(one) else None for one in inputs]
            totals: list[SSAValue] = []
            if self.is_one_pass:
                totals = self._mean_and_deviations(here, shared)
            for kind, element, finish in op.reductions() if not self.is_one_pass else ():
                accumulator = finish.block.args[0].type
                init = number(self.k, identity(kind, element_name(accumulator)), accumulator)

                def summand(at: Sequence[SSAValue]) -> SSAValue:
                    return self.inline(element, [], here, at, shared, totals)[0]

                total = reduction(kind, Box(self.row), init, summand)
                totals = [*totals, *self.inline(finish, [total], here, [], shared, totals)]
            if self.is_reduced:
                self._store(self.inline(op.body, [], here, [], shared, totals), here)
            else:
                for at in parallel(self.row):
                    self._store(self.inline(op.body, [], here, at, shared, totals), [*here, *at])

    @kernel
    def _mean_and_deviations(self, here: Sequence[SSAValue], shared: Sequence[SSAValue | None]) -> list[SSAValue]:
        """What becomes of the sum and of the squared deviations, whose sums are reduced side by side."""
        (_, element, finish), (_, _, finish_squares) = self.op.reductions()
        zero, length = constant(0.0, f32), prod(one for one in self.row if isinstance(one, int))
        last = self.row[-1]
        part = [*self.row[:-1], symbolic.floor_div(last, PARTS)]

        def plain(at: Sequence[SSAValue]) -> Value:
            return value_of(self.inline(element, [], here, at, shared, [])[0])

        near = reduction(ReduceKind.ADD, Box(part), zero, plain) * (PARTS / length)

        def apart(at: Sequence[SSAValue]) -> Value:
            return plain(at) - near

        def squared(at: Sequence[SSAValue]) -> Value:
            difference = plain(at) - near
            return difference * difference

        total = reduction(ReduceKind.ADD, Box(self.row), zero, apart)
        squares = reduction(ReduceKind.ADD, Box(self.row), zero, squared)
        mean = self.inline(finish, [near * float(length) + total], here, [], shared, [])
        left = max(squares - total * total * (1.0 / length), zero)
        return [*mean, *self.inline(finish_squares, [left], here, [], shared, mean)]

    def _store(self, results: Sequence[SSAValue], at: Sequence[SSAValue]) -> None:
        for position, result in enumerate(results, len(self.op.inputs)):
            self.code.store(result, position, at)

    def is_used(self, position: int) -> bool:
        """Whether a region reads an input."""
        op = self.op
        regions = [(op.body, 0), *((region, k % 2) for k, region in enumerate(op.stages))]
        return any(region.block.args[first + position].first_use is not None for region, first in regions)

    @kernel
    def inline(
        self,
        region: Region,
        first: Sequence[SSAValue],
        here: Sequence[SSAValue],
        at: Sequence[SSAValue],
        shared: Sequence[SSAValue | None],
        totals: Sequence[SSAValue],
    ) -> Sequence[SSAValue]:
        """The results of a region at an element of a row, with what it uses loaded."""
        names = region.block.args[len(first) : len(first) + len(shared)]
        loaded = [
            self._scalar(position, name, known, [*here, *at])
            for position, (name, known) in enumerate(zip(names, shared, strict=True))
        ]
        return inline(region, [*first, *loaded, *totals])

    @kernel
    def _scalar(self, position: int, name: SSAValue, known: SSAValue | None, at: Sequence[SSAValue]) -> SSAValue:
        """An input of a region at an element: what is known of it, else what is loaded; 0 where nothing reads it."""
        if known is not None:
            return known
        return self.code.load(position, at) if name.first_use is not None else place(0)
