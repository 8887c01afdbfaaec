"""Running sums and products across memory, on a GPU: a block has some neighbouring columns and shares out each.

for some rows of the columns {
  each thread: load its rows of a vector of columns, combine them one after the other
  write down what they come to; wait; read what those before come to
  each thread: store its rows, each combined with all that is before it
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.ir import SSAValue

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.kernel.fragment import FragmentElementOp, FragmentOp, LoadFragmentOp, StoreFragmentOp
from mlirt.dialects.kernel.simt import BarrierOp, BlockIdOp, SharedOp, ThreadIdOp
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool, stored_bytes
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.language import build, kernel
from mlirt.kernels.lib.language.words import ceil_div, place
from mlirt.kernels.lib.loops.rows import rows, whole
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.cuda.scan_kernel import computed

OPS = (CumulativeOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_LANES, _COLUMN_BYTES = 4, 16  # columns of a thread, and bytes of them
_ROWS = 8  # of a thread at a time
_ACROSS, _ALONG, _THREADS = 32, 32, 256  # the most threads of a block next to each other and behind each other, and all
_MIN_ROWS = 64  # rows with which threads that walk along whole columns have too little to do
_INT32_LIMIT = 2**31


@dataclass(frozen=True)
class Columns:
    """A block has `across` vectors of columns and `along` threads for each."""

    vector: int
    across: int
    along: int

    @property
    def rows(self) -> int:
        """That a block has at a time."""
        return self.along * _ROWS


def lower(op: CumulativeOp, lowering: Lowering) -> bool:
    axis, both = op.axis.value.data, [lowering.placements[value].strides for value in (op.input, op.output)]
    length = typical(dims(op.input.type)[axis], typical_values(lowering.block))
    if any(steps[axis] == 1 for steps in both) or is_bool(element_of(op.input.type)) or length < _MIN_ROWS:
        return False
    kernel = _Columns(op, lowering)
    if not kernel.has_neighbours():
        return False
    kernel.write()
    return True


class _Columns:
    """The kernel of one op."""

    def __init__(self, op: CumulativeOp, lowering: Lowering) -> None:
        self.op, self.lowering = op, lowering
        self.k = k = lowering.kernel("cumulative")
        self.element = element_of(op.input.type)
        self.wide = computed(self.element)
        operands = [whole(op.input, lowering), whole(op.output, lowering)]
        self.code, self.border = rows(k, dims(op.input.type), op.axis.value.data, operands)
        self.outer, (length,) = self.code.split(self.border)
        self.length = k.size(length)
        self.is_sum = op.kind.data is CumulativeKind.SUM
        self.neutral = k.constant(0 if self.is_sum else 1, scalar_type(self.wide))
        self.memories = [k.bits(op.input), k.bits(op.output)]

    def has_neighbours(self) -> bool:
        """Whether the columns lie next to each other in both tensors."""
        loop = len(self.outer) - 1
        groups = [group for group in self.code.nest.groups if group[0] < self.border]
        return bool(groups) and all(one.steps[loop] == 1 for one in self.code.nest.operands)

    def _plan(self) -> Columns:
        """How a block shares out its columns."""
        columns, both = self.outer[-1], zip((self.op.input, self.op.output), self.code.nest.operands, strict=True)
        vector = min(_LANES, _COLUMN_BYTES // byte_width(self.element))
        for value, one in both:
            others = [*one.steps[: len(self.outer) - 1], one.steps[-1]]
            vector = min(vector, widest_access(value, others, self.lowering))
        while vector > 1 and not is_multiple(columns, vector):
            vector //= 2
        across, count = 1, typical(columns, typical_values(self.lowering.block)) // vector
        while across < min(_ACROSS, count):
            across *= 2
        return Columns(vector, across, min(_ALONG, _THREADS // across))

    def write(self) -> None:
        k, plan = self.k, self._plan()
        thread, block = k.value(ThreadIdOp()), k.value(BlockIdOp())
        thread.name_hint, block.name_hint = "thread", "block"
        self.plan, self.across, self.along = plan, k.rem(thread, plan.across), k.div(thread, plan.across)
        vectors = ceil_div(self.outer[-1], plan.vector)
        blocks = ceil_div(vectors, plan.across)
        *others, column = k.split(block, [*(k.size(size) for size in self.outer[:-1]), k.size(blocks)])
        column = k.add(k.mul(column, plan.across), self.across)
        self.exists = None if is_multiple(vectors, plan.across) else k.compare("slt", column, k.size(vectors))
        indices = [*others, k.mul(column, plan.vector)]
        self.starts = [self.code.linear(operand, indices) for operand in range(2)]
        self.steps = [self.code.step(operand, len(self.outer)) for operand in range(2)]
        self.totals = k.value(SharedOp(plan.along * plan.across * plan.vector, scalar_type(self.wide)))
        build(k, self._all_rows, [self.neutral] * plan.vector)
        sizes = [stored_bytes(value.type) for value in (self.op.input, self.op.output)]
        if all(isinstance(size, int) and size < _INT32_LIMIT for size in sizes):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        grid = [product([*self.outer[:-1], blocks]), 1, 1]
        k.finish(self.op, grid=grid, block=[max(32, plan.across * plan.along)])

    @kernel
    def _all_rows(self, before: list[SSAValue]) -> None:
        """`before` is what no row comes to."""
        length, rows = known(self.length), self.plan.rows
        if length is not None and length <= rows:
            self._rows(place(0), before)
        else:
            for step in range(ceil_div(self.length, rows)):
                before = self._rows(place(step * rows), before)

    def _rows(self, first: SSAValue, before: Sequence[SSAValue]) -> list[SSAValue]:
        """Do some rows of the block; returns all that came up to their end."""
        k, plan = self.k, self.plan
        places = [k.add(k.add(first, k.mul(self.along, _ROWS)), row) for row in range(_ROWS)]
        runs = [self._load(place) for place in places]
        for row in range(1, _ROWS):
            runs[row] = self._combined(runs[row - 1], runs[row])
        own = k.mul(k.add(k.mul(self.along, plan.across), self.across), plan.vector)
        lanes, wide = range(plan.vector), plan.vector > 1
        k.insert(StoreFragmentOp(k.value(FragmentOp(runs[-1])), self.totals, own, lanes, wide=wide))
        k.insert(BarrierOp())
        left = list(before)
        for number in range(plan.along):
            index = k.mul(k.add(self.across, number * plan.across), plan.vector)
            read = k.value(LoadFragmentOp(self.totals, index, lanes, wide=wide))
            part = [k.value(FragmentElementOp(read, lane)) for lane in lanes]
            before = self._combined(before, part)
            is_before = k.compare("sgt", self.along, number)
            left = [k.select(is_before, a, b) for a, b in zip(before, left, strict=True)]
        k.insert(BarrierOp())
        results = [left, *(self._combined(left, run) for run in runs)]
        for row, values in zip(places, results if self.op.exclusive.value.data else results[1:], strict=False):
            self._store(values, row)
        return list(before)

    def _combined(self, a: Sequence[SSAValue], b: Sequence[SSAValue]) -> list[SSAValue]:
        return [self._combine(*pair) for pair in zip(a, b, strict=True)]

    def _combine(self, a: SSAValue, b: SSAValue) -> SSAValue:
        s = self.k.scalars(self.wide)
        return b if a is self.neutral else s.add(a, b) if self.is_sum else s.mul(a, b)

    def _access(self, place: SSAValue, operand: int) -> tuple[SSAValue, SSAValue | None]:
        """Where a vector of a row lies, and how many of its elements there are (None: all)."""
        k, plan, length = self.k, self.plan, known(self.length)
        is_whole = length is not None and length % plan.rows == 0
        inside = k.both(self.exists, None if is_whole else k.compare("slt", place, self.length))
        valid = None if inside is None else k.select(inside, plan.vector, 0)
        row = k.sub(k.sub(self.length, 1), place) if self.op.reverse.value.data else place
        return k.add(self.starts[operand], k.mul(row, self.steps[operand])), valid

    def _load(self, place: SSAValue) -> list[SSAValue]:
        k, lanes, s = self.k, range(self.plan.vector), self.k.scalars(self.wide)
        index, valid = self._access(place, 0)
        loaded = k.value(LoadFragmentOp(self.memories[0], index, lanes, valid=valid, wide=len(lanes) > 1))
        elements = [s.cast(k.value(FragmentElementOp(loaded, lane)), self.element) for lane in lanes]
        if self.is_sum or valid is None:
            return elements
        inside = k.compare("sgt", valid, 0)
        return [k.select(inside, element, self.neutral) for element in elements]

    def _store(self, values: Sequence[SSAValue], place: SSAValue) -> None:
        k, lanes, s = self.k, range(self.plan.vector), self.k.scalars(self.element)
        index, valid = self._access(place, 1)
        stored = k.value(FragmentOp([s.cast(value, self.wide) for value in values]))
        k.insert(StoreFragmentOp(stored, self.memories[1], index, lanes, valid=valid, wide=len(lanes) > 1))


__all__ = ["lower"]
