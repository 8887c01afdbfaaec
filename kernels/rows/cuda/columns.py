"""Running sums and products across memory, on a GPU: a block has some neighbouring columns and shares out each.

for some rows of the columns {
  each thread: load its rows of a vector of columns, combine them one after the other
  write down what they come to; wait; read what those before come to
  each thread: store its rows, each combined with all that is before it
}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from xdsl.dialects.builtin import IntegerAttr, i64

from mlirt.dialects.fused.cumulative import CumulativeOp
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.layout import vector_width
from mlirt.dialects.running_totals import CumulativeKind
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, dims, element_of, is_bool
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.index_arithmetic import known
from mlirt.kernels.lib.cuda.tiles.alignment import is_multiple, widest_access
from mlirt.kernels.lib.language import Index, Value, build, kernel, value_of
from mlirt.kernels.lib.language.combine_words import Combiner
from mlirt.kernels.lib.language.simt_words import (
    Access,
    block_id,
    element_at,
    fragment,
    load_fragment,
    shared_memory,
    store_fragment,
    sync_threads,
    thread_id,
)
from mlirt.kernels.lib.language.words import cast, ceil_div, extent, split, static_range
from mlirt.kernels.lib.loops.rows import rows, whole
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.cuda.scan_kernel import computed
from mlirt.kernels.rows.running_totals import totals_of

OPS = (CumulativeOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 10

_LANES, _COLUMN_BYTES = 4, 16  # columns of a thread, and bytes of them
_ROWS = 8  # of a thread at a time
_ACROSS, _ALONG, _THREADS = 32, 32, 256  # the most threads of a block next to each other and behind each other, and all
_MIN_ROWS = 64  # rows with which threads that walk along whole columns have too little to do


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


@dataclass(frozen=True)
class _Thread:
    """Which vector of columns and which rows of it a thread has, whether there are such (None: yes), where the columns
    start in both tensors, and what the threads of a block share.
    """

    across: Value
    along: Value
    exists: bool | None
    starts: Sequence[Value]
    steps: Sequence[Index]
    shared: Value
    combiner: Combiner

    def combined(self, a: Sequence[Value], b: Sequence[Value]) -> list[Value]:
        """Two rows of a vector as one."""
        return [self.combiner.of(*pair) for pair in zip(a, b, strict=True)]


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
        self.length = value_of(k.size(length))
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
        vector = vector_width(vector, columns)
        across, count = 1, typical(columns, typical_values(self.lowering.block)) // vector
        while across < min(_ACROSS, count):
            across *= 2
        return Columns(vector, across, min(_ALONG, _THREADS // across))

    def write(self) -> None:
        k, plan = self.k, self._plan()
        self.plan, self.access = plan, Access(range(plan.vector), wide=plan.vector > 1)
        blocks = ceil_div(ceil_div(self.outer[-1], plan.vector), plan.across)
        build(k, self._kernel, blocks)
        if k.lowering.fits_int32((self.op.input, self.op.output)):
            k.function.attributes["index_bits"] = IntegerAttr(32, i64)
        grid = [product([*self.outer[:-1], blocks]), 1, 1]
        k.finish(self.op, grid=grid, block=[max(32, plan.across * plan.along)])

    @kernel
    def _kernel(self, blocks: Dim) -> None:
        """All rows of the columns of a block, some at a time."""
        thread, length = self._thread(blocks), known(self.length)
        before = [thread.combiner.neutral[0] for _ in static_range(self.plan.vector)]
        if length is not None and length <= self.plan.rows:
            self._rows(thread, 0, before)
        else:
            for step in range(ceil_div(self.length, self.plan.rows)):
                before = self._rows(thread, step * self.plan.rows, before)

    @kernel
    def _thread(self, blocks: Dim) -> _Thread:
        plan, code, depth = self.plan, self.code, len(self.outer)
        thread, block = thread_id(), block_id()
        across, along = thread % plan.across, thread // plan.across
        *others, of_block = split(block, [*self.outer[:-1], blocks])
        column = of_block * plan.across + across
        vectors = ceil_div(self.outer[-1], plan.vector)
        exists = None if is_multiple(vectors, plan.across) else column < extent(vectors)
        indices = [*others, column * plan.vector]
        starts = [value_of(code.linear(operand, indices)) for operand in static_range(2)]
        steps = [code.step(operand, depth) for operand in static_range(2)]
        shared = shared_memory("totals", plan.along * plan.across * plan.vector, scalar_type(self.wide))
        return _Thread(across, along, exists, starts, steps, shared, totals_of(self.op, self.wide))

    @kernel
    def _rows(self, thread: _Thread, first: Index, before: list[Value]) -> list[Value]:
        """Do some rows of the block; returns all that came up to their end."""
        plan, lanes = self.plan, static_range(self.plan.vector)
        places = [first + thread.along * _ROWS + row for row in static_range(_ROWS)]
        runs = list(accumulate([self._load(thread, at) for at in places], thread.combined))
        own = (thread.along * plan.across + thread.across) * plan.vector
        store_fragment(fragment(runs[-1]), thread.shared, own, self.access)
        sync_threads()
        left = before
        for number in static_range(plan.along):
            read = load_fragment(thread.shared, (thread.across + number * plan.across) * plan.vector, self.access)
            before = thread.combined(before, [element_at(read, lane) for lane in lanes])
            is_before = thread.along > number
            left = [a if is_before else b for a, b in zip(before, left, strict=True)]
        sync_threads()
        results = [left, *[thread.combined(left, run) for run in runs]]
        for at, values in zip(places, results if self.op.exclusive.value.data else results[1:], strict=False):
            self._store(thread, values, at)
        return before

    @kernel
    def _place(self, thread: _Thread, at: Value, operand: int) -> tuple[Value, Access]:
        """Where a vector of a row lies, and how many of its elements there are (None: all)."""
        plan, length = self.plan, known(self.length)
        inside = (thread.exists is None or thread.exists) and (
            (length is not None and length % plan.rows == 0) or at < self.length
        )
        valid = None if inside is True else plan.vector if inside else 0
        row = self.length - 1 - at if self.op.reverse.value.data else at
        return thread.starts[operand] + row * thread.steps[operand], replace(self.access, valid=valid)

    @kernel
    def _load(self, thread: _Thread, at: Value) -> list[Value]:
        index, access = self._place(thread, at, 0)
        loaded = load_fragment(self.memories[0], index, access)
        elements = [cast(element_at(loaded, lane), self.element, self.wide) for lane in access.offsets]
        if self.op.kind.data is CumulativeKind.SUM or access.valid is None:
            return elements
        inside = access.valid > 0
        return [element if inside else thread.combiner.neutral[0] for element in elements]

    @kernel
    def _store(self, thread: _Thread, values: Sequence[Value], at: Value) -> None:
        index, access = self._place(thread, at, 1)
        results = [cast(value, self.wide, self.element) for value in values]
        store_fragment(fragment(results), self.memories[1], index, access)


__all__ = ["lower"]
