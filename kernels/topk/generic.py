"""The k extreme elements of each row: few are picked one after the other, many find their rank by counting."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.arg_reduction import ExtremeKind
from mlirt.dialects.fused.topk import TopkOp
from mlirt.dialects.kernel.core import ReduceKind
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.loop_nest import NestCode
from mlirt.kernels.lib.loops.rows import rows, whole, without_axis
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.topk.row_order import comes_before, key, key_type
from mlirt.kernels.topk.row_shares import normalize

OPS = (TopkOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0

_MAX_SELECTED = 64


def lower(op: TopkOp, lowering: Lowering) -> bool:
    axis, space = op.axis.value.data, dims(op.input.type)
    k = lowering.kernel("topk")
    results = [without_axis(whole(value, lowering), axis) for value in (op.values, op.indices)]
    code, border = rows(k, space, axis, [whole(op.input, lowering), *results])
    steps = [k.strides(value)[axis] for value in (op.values, op.indices)]
    if lowering.target.kind == "cpu" and op.count() == 1 and op.values.first_use is None:
        _find(k, op, code, border, steps)
    else:
        (_pick if _is_few(op.count(), space[axis]) else _rank)(k, op, code, border, steps)
    k.finish(op)
    normalize(op, lowering)
    return True


def _is_few(count: Dim, length: Dim) -> bool:
    if not isinstance(count, int):
        return False
    return count <= (_MAX_SELECTED if not isinstance(length, int) else max(length // 8, 1))


class _Row:
    """A row of the input and its place in the results."""

    def __init__(self, k: KernelBuilder, op: TopkOp, code: NestCode, here: list[SSAValue], steps: list[SSAValue | int]):
        self._k, self._code, self._here, self._steps = k, code, here, steps
        self._element = element_of(op.input.type)
        self._index_type = element_of(op.indices.type)
        self._largest_first = op.kind.data is ExtremeKind.MAX

    def key(self, place: SSAValue) -> SSAValue:
        value = self._code.load(0, [*self._here, place])
        return key(self._k, value, self._element, largest_first=self._largest_first)

    def put(self, source: SSAValue, rank: SSAValue) -> None:
        """The element at `source` is the one of this rank."""
        self._code.store(self._code.load(0, [*self._here, source]), 1, self._here, [(rank, self._steps[0])])
        self.put_place(source, rank)

    def put_place(self, source: SSAValue, rank: SSAValue) -> None:
        """Where the element of this rank is."""
        position = self._k.to_integer(source, self._index_type)
        self._code.store(position, 2, self._here, [(rank, self._steps[1])])


def _find(k: KernelBuilder, op: TopkOp, code: NestCode, border: int, steps: list[SSAValue | int]) -> None:
    """`parallel (rows) { best key; its first place }`, where nobody reads the element: rows may be lanes of vectors."""
    outer, (length,) = code.split(border)
    type_ = key_type(element_of(op.input.type))
    lowest = k.constant(-(2 ** (type_.width.data - 1)), type_)
    extent = k.extent(length)
    with k.parallel(outer) as loops:
        row = _Row(k, op, code, code.loops_before(border, loops), steps)
        best = k.reduce(ReduceKind.MAX, [extent], lowest, lambda at: row.key(at[0]))

        def place(at: list[SSAValue]) -> SSAValue:
            return k.select(k.compare("eq", row.key(at[0]), best), at[0], extent)

        row.put_place(k.reduce(ReduceKind.MIN, [extent], extent, place), k.constant(0))


def _pick(k: KernelBuilder, op: TopkOp, code: NestCode, border: int, steps: list[SSAValue | int]) -> None:
    """`parallel (rows) { for r < k: best key of those that come after the last one; its first place }`."""
    outer, (length,) = code.split(border)
    type_ = key_type(element_of(op.input.type))
    lowest = k.constant(-(2 ** (type_.width.data - 1)), type_)
    extent = k.extent(length)
    with k.parallel(outer) as loops:
        row = _Row(k, op, code, code.loops_before(border, loops), steps)

        def step(rank: SSAValue, last: list[SSAValue]) -> list[SSAValue]:
            is_first = k.compare("eq", rank, 0)

            def is_left(own: SSAValue, place: SSAValue) -> SSAValue:
                return k.value(arith.OrIOp(is_first, comes_before(k, (last[0], last[1]), (own, place))))

            def candidate(at: list[SSAValue]) -> SSAValue:
                own = row.key(at[0])
                return k.value(arith.SelectOp(is_left(own, at[0]), own, lowest))

            best = k.reduce(ReduceKind.MAX, [extent], lowest, candidate)

            def place(at: list[SSAValue]) -> SSAValue:
                own = row.key(at[0])
                found = k.value(arith.AndIOp(is_left(own, at[0]), k.compare("eq", own, best)))
                return k.select(found, at[0], extent)

            # A row has at least `count` elements, so that there is one; the clamp proves that it is read inside.
            source = k.clamp(k.reduce(ReduceKind.MIN, [extent], extent, place), extent)
            row.put(source, rank)
            return [best, source]

        k.loop(op.count(), [lowest, k.constant(-1)], step)


def _rank(k: KernelBuilder, op: TopkOp, code: NestCode, border: int, steps: list[SSAValue | int]) -> None:
    """`parallel (rows, i) { rank = how many elements come before element i; put it there if rank < k }`."""
    outer, (length,) = code.split(border)
    extent, count = k.extent(length), k.size(op.count())
    with k.parallel([*outer, extent]) as loops:
        row = _Row(k, op, code, code.loops_before(border, loops), steps)
        own = (row.key(loops[-1]), loops[-1])

        def is_before(at: list[SSAValue]) -> SSAValue:
            return k.value(arith.ExtUIOp(comes_before(k, (row.key(at[0]), at[0]), own), i32))

        rank = k.from_integer(k.reduce(ReduceKind.ADD, [extent], k.constant(0, i32), is_before))
        k.when(k.compare("slt", rank, count), lambda: row.put(loops[-1], rank))
