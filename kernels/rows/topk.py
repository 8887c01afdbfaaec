"""The k extreme elements of each row: few are picked one after the other, many find their rank by counting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.topk import ExtremeKind, TopkOp
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.language import Index, Value, build, kernel, value_of
from mlirt.kernels.lib.language.combine_words import first_largest
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.words import (
    Box,
    clamp,
    constant,
    extent,
    index_of,
    integer_of,
    parallel,
    place,
    reduction,
)
from mlirt.kernels.lib.loops.loop_nest import NestCode
from mlirt.kernels.lib.loops.rows import rows, whole, without_axis
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rows.row_order import comes_before, key, key_type
from mlirt.kernels.rows.row_shares import normalize

_MAX_SELECTED = 64
_STEP_CYCLES, _BUSY_THREADS = 40, 512  # of a thread from element to element; threads of a processor with that speed
_COMPARE_CYCLES = 6  # of each lane


def lower(op: TopkOp, lowering: Lowering) -> bool:
    axis, space = op.axis.value.data, dims(op.input.type)
    k = lowering.kernel("topk")
    results = [without_axis(whole(value, lowering), axis) for value in (op.values, op.indices)]
    code, border = rows(k, space, axis, [whole(op.input, lowering), *results])
    steps = [k.strides(value)[axis] for value in (op.values, op.indices)]
    if lowering.target.kind == "cpu" and op.count() == 1:
        is_counted = isinstance(space[axis], int)  # so that 32 bits hold a place
        way = _walk if is_counted and code.nest.operands[0].steps[-1] != 1 else _find
    else:
        way = _pick if _is_few(op, lowering) else _rank
    build(k, way, op, code, border, steps)
    k.finish(op)
    normalize(op, lowering)
    return True


def _is_few(op: TopkOp, lowering: Lowering) -> bool:
    """Whether picking takes no longer than ranking."""
    count, axis, space = op.count(), op.axis.value.data, dims(op.input.type)
    length = space[axis]
    if not isinstance(count, int):
        return False
    if lowering.target.kind == "cuda":
        known = typical_values(lowering.block)
        rows = typical(product(size for place, size in enumerate(space) if place != axis), known)
        return _picks_on_device(count, typical(length, known), rows, lowering.target.gpu)
    return count <= (_MAX_SELECTED if not isinstance(length, int) else max(length // 8, 1))


def _picks_on_device(count: int, length: int, rows: int, device: GpuDevice) -> bool:
    pick, rank = _pick_and_rank_cycles(count, length, rows, device)
    return pick <= 2 * rank


def cycles_on_device(count: int, length: int, rows: int, device: GpuDevice) -> float:
    """Roughly, of the quicker way."""
    return min(_pick_and_rank_cycles(count, length, rows, device))


def _pick_and_rank_cycles(count: int, length: int, rows: int, device: GpuDevice) -> tuple[float, float]:
    """A thread picks from a row, an element after the other; ranks are counted by all threads."""
    pick = _STEP_CYCLES * 2 * count * length * max(1.0, rows / (_BUSY_THREADS * device.processors))
    rank = _COMPARE_CYCLES * length**2 * rows / (device.float_products * device.processors)
    return pick, rank


@dataclass(frozen=True, eq=False)
class _Row:
    """A row of the input and its place in the results."""

    op: TopkOp
    code: NestCode
    here: Sequence[SSAValue]
    steps: Sequence[Stride]

    def key(self, at: SSAValue) -> Value:
        """What an element is compared by."""
        return self.key_of(self.code.load(0, [*self.here, at]))

    def key_of(self, element: SSAValue) -> Value:
        return key(element, element_of(self.op.input.type), largest_first=self.op.kind.data is ExtremeKind.MAX)

    def put(self, source: SSAValue, rank: Index) -> None:
        """The element at `source` is the one of this rank."""
        self.code.store(self.code.load(0, [*self.here, source]), 1, self.here, [(place(rank), self.steps[0])])
        self.put_place(source, rank)

    def put_place(self, source: SSAValue, rank: Index) -> None:
        """Where the element of this rank is."""
        position = integer_of(source, element_of(self.op.indices.type))
        self.code.store(position, 2, self.here, [(place(rank), self.steps[1])])


def _lowest(op: TopkOp) -> Value:
    type_ = key_type(element_of(op.input.type))
    return constant(-(2 ** (type_.width.data - 1)), type_)


@kernel
def _find(op: TopkOp, code: NestCode, border: int, steps: Sequence[Stride]) -> None:
    """`for each row: best key; its first place`: a row is in lanes of vectors."""
    outer, (size,) = code.split(border)
    lowest, length = _lowest(op), extent(size)
    for loops in parallel(outer):
        row = _Row(op, code, code.loops_before(border, loops), steps)
        best = reduction(ReduceKind.MAX, Box(length), lowest, row.key)

        def found(at: Value) -> Value:
            return at if row.key(at) == best else length

        source = reduction(ReduceKind.MIN, Box(length), length, found)
        if op.values.first_use is None:
            row.put_place(source, 0)
        else:
            row.put(clamp(source, length), 0)


@kernel
def _walk(op: TopkOp, code: NestCode, border: int, steps: Sequence[Stride]) -> None:
    """`for each row: for each i: best, place = x, i where x comes before`: rows may be lanes of vectors."""
    outer, (size,) = code.split(border)
    for loops in parallel(outer):
        row = _Row(op, code, code.loops_before(border, loops), steps)
        combiner = first_largest([_lowest(op), constant(0, i32), code.load(0, [*row.here, place(0)])])
        best = combiner.neutral
        for i in range(extent(size)):
            element, at = code.load(0, [*row.here, place(i)]), integer_of(i, i32)
            best = combiner.tuples(best, [row.key_of(element), at, element])
        _, source, value = best
        row.put_place(index_of(source), 0)
        if op.values.first_use is not None:
            code.store(value, 1, row.here, [(place(0), steps[0])])


@kernel
def _pick(op: TopkOp, code: NestCode, border: int, steps: Sequence[Stride]) -> None:
    """`for each row: for r < k: best key of those that come after the last one; its first place`."""
    outer, (size,) = code.split(border)
    lowest, length = _lowest(op), extent(size)
    for loops in parallel(outer):
        row = _Row(op, code, code.loops_before(border, loops), steps)
        last, source = lowest, place(-1)
        for rank in range(extent(op.count())):
            is_first = rank == 0

            def is_left(own: Value, at: Value) -> bool:
                return is_first or comes_before((last, source), (own, at))

            def candidate(at: Value) -> Value:
                own = row.key(at)
                return own if is_left(own, at) else lowest

            best = reduction(ReduceKind.MAX, Box(length), lowest, candidate)

            def found(at: Value) -> Value:
                own = row.key(at)
                return at if is_left(own, at) and own == best else length

            # A row has at least `count` elements, so that there is one; the clamp proves that it is read inside.
            last, source = best, clamp(reduction(ReduceKind.MIN, Box(length), length, found), length)
            row.put(source, rank)


@kernel
def _rank(op: TopkOp, code: NestCode, border: int, steps: Sequence[Stride]) -> None:
    """`for each row and i: rank = how many elements come before element i; put it there if rank < k`."""
    outer, (size,) = code.split(border)
    length, count = extent(size), extent(op.count())
    for loops in parallel([*outer, length]):
        row = _Row(op, code, code.loops_before(border, loops), steps)
        own = (row.key(loops[-1]), loops[-1])

        def is_before(at: Value) -> Value:
            return emit(arith.ExtUIOp(comes_before((row.key(at), at), own), i32))

        rank = value_of(index_of(reduction(ReduceKind.ADD, Box(length), constant(0, i32), is_before)))
        if rank < count:
            row.put(loops[-1], rank)
