"""Attention in three steps with the scores in memory: correct everywhere, fast nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.kernel.core import LoadOp, ReduceKind, StoreOp
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.attention.walks import Walk, Walks
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (AttentionOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: AttentionOp, lowering: Lowering) -> bool:
    """`parallel (b.., i, j) { score }`, `parallel (b.., i) { softmax }`, `parallel (b.., i, c) { sum }`."""
    walks, wide = Walks.of(op, lowering), op.score.block.args[0].type
    scores, weights = (Matrix.of(op, wide, lowering) for _ in range(2))
    _write_scores(op, walks, scores, lowering)
    _normalize(op, scores, weights, lowering)
    _add_values(op, walks, weights, lowering)
    return True


@dataclass(frozen=True)
class Matrix:
    """Scratch memory `[b.., i, j]`."""

    buffer: SSAValue
    element: Attribute
    steps: tuple[Dim, ...]

    @staticmethod
    def of(op: AttentionOp, element: Attribute, lowering: Lowering) -> Matrix:
        space = [*op.batch, op.queries, op.keys]
        buffer = lowering.placements.scratch(product(space) * byte_width(element))
        return Matrix(buffer, element, tuple(product(space[axis + 1 :]) for axis in range(len(space))))

    def load(self, k: KernelBuilder, at: Sequence[SSAValue]) -> SSAValue:
        steps = [k.stride(step) for step in self.steps]
        return k.value(LoadOp(k.memory(self.buffer, self.element), at, steps))

    def store(self, k: KernelBuilder, value: SSAValue, at: Sequence[SSAValue]) -> None:
        steps = [k.stride(step) for step in self.steps]
        k.insert(StoreOp(value, k.memory(self.buffer, self.element), at, steps))


def _read(k: KernelBuilder, walk: Walk, batch: Sequence[SSAValue], *pairs: tuple[SSAValue, Dim]) -> SSAValue:
    steps = [k.stride(step) for step in (*walk.batch, *(step for _, step in pairs))]
    return k.value(LoadOp(walk.buffer(k), [*batch, *(index for index, _ in pairs)], steps))


def _write_scores(op: AttentionOp, walks: Walks, scores: Matrix, lowering: Lowering) -> None:
    k = lowering.kernel("attention_scores")
    wide = scores.element
    with k.parallel([*op.batch, op.queries, op.keys]) as loops:
        *batch, query, key = loops

        def factor(at: list[SSAValue]) -> SSAValue:
            s = k.scalars(wide)
            left = _read(k, walks.query, batch, (query, walks.query.query), (at[0], walks.query.depth))
            right = _read(k, walks.key, batch, (key, walks.key.key), (at[0], walks.key.depth))
            return s.mul(s.cast(left, left.type), s.cast(right, right.type))

        total = k.reduce(ReduceKind.ADD, [op.depth], k.constant(0, wide), factor)
        extras = [_read(k, walk, batch, (query, walk.query), (key, walk.key)) for walk in walks.extras]
        (score,) = k.inline(op.score, [total, *extras], loops)
        offset = op.last_key_offset()
        if offset is not None:
            counts = k.compare("sle", key, k.add(query, k.size(offset)))
            score = k.value(arith.SelectOp(counts, score, k.constant(float("-inf"), wide)))
        scores.store(k, score, loops)
    k.finish(op)


def _normalize(op: AttentionOp, scores: Matrix, weights: Matrix, lowering: Lowering) -> None:
    k = lowering.kernel("attention_softmax")
    wide = scores.element
    with k.parallel([*op.batch, op.queries]) as row:

        def exponential(at: Sequence[SSAValue], largest: SSAValue) -> SSAValue:
            return k.value(math.ExpOp(k.scalars(wide).sub(scores.load(k, [*row, *at]), largest)))

        lowest = k.constant(float("-inf"), wide)
        largest = k.reduce(ReduceKind.MAX, [op.keys], lowest, lambda at: scores.load(k, [*row, *at]))
        total = k.reduce(ReduceKind.ADD, [op.keys], k.constant(0, wide), lambda at: exponential(at, largest))
        is_empty = _is_empty(k, total) if op.zero_masked.value.data else None
        with k.parallel([op.keys]) as at:
            value = k.scalars(wide).div(exponential(at, largest), total)
            if is_empty is not None:
                value = k.value(arith.SelectOp(is_empty, k.constant(0, wide), value))
            weights.store(k, value, [*row, *at])
    k.finish(op)


def _is_empty(k: KernelBuilder, total: SSAValue) -> SSAValue:
    """Whether a row has no score above -inf: then the sum of its exponentials is not-a-number."""
    return k.value(arith.CmpfOp(total, k.constant(0, total.type), "ule"))


def _add_values(op: AttentionOp, walks: Walks, weights: Matrix, lowering: Lowering) -> None:
    k = lowering.kernel("attention_sum")
    wide, element = weights.element, element_of(op.output.type)
    with k.parallel([*op.batch, op.queries, op.columns]) as loops:
        *batch, query, column = loops

        def term(at: list[SSAValue]) -> SSAValue:
            s = k.scalars(wide)
            value = _read(k, walks.values, batch, (at[0], walks.values.key), (column, walks.values.column))
            return s.mul(weights.load(k, [*batch, query, at[0]]), s.cast(value, value.type))

        total = k.reduce(ReduceKind.ADD, [op.keys], k.constant(0, wide), term)
        result, out = k.scalars(element).cast(total, wide), walks.out
        steps = [k.stride(step) for step in (*out.batch, out.query, out.column)]
        k.insert(StoreOp(result, k.buffer(out.value), loops, steps))
    k.finish(op)
