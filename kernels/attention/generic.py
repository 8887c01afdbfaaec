"""Attention in three steps with the scores in memory: correct everywhere, fast nowhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.layout import Layout
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.attention.results import finished_result
from mlirt.kernels.attention.walks import Walk, Walks
from mlirt.kernels.lib.epilogue import finished
from mlirt.kernels.lib.language import Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.words import Box, Strided, cast, constant, exp, extent, parallel, stride
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (AttentionOp,)
TARGETS = frozenset({"cpu", "cuda"})
PRIORITY = 0


def lower(op: AttentionOp, lowering: Lowering) -> bool:
    """A kernel for the scores, one for their softmax, and one for the sums of values."""
    walks, wide = Walks.of(op, lowering), op.score.block.args[0].type
    scores, weights = (Matrix.of(op, wide, lowering) for _ in range(2))
    k = lowering.kernel("attention_scores")
    build(k, _write_scores, op, walks, scores)
    k.finish(op)
    k = lowering.kernel("attention_softmax")
    build(k, _normalize, op, scores, weights)
    k.finish(op)
    k = lowering.kernel("attention_sum")
    build(k, _add_values, op, walks, weights)
    k.finish(op)
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
        return Matrix(buffer, element, Layout.row_major(space).strides())

    def memory(self) -> Strided:
        """It in a kernel."""
        steps = [stride(step) for step in self.steps]
        return Strided(builder().memory(self.buffer, self.element), steps)


def read_element(walk: Walk, at: Sequence[Value], steps: Sequence[Dim]) -> Value:
    """An element of what is walked through, at an index for each of the steps."""
    known = [stride(step) for step in steps]
    return Strided(walk.buffer(builder()), known)[tuple(at)]


def _read(walk: Walk, batch: Sequence[Value], *pairs: tuple[Value, Dim]) -> Value:
    """An element of an operand at a batch entry and further indices with their steps."""
    at = [*batch, *(index for index, _ in pairs)]
    return read_element(walk, at, [*walk.batch, *(step for _, step in pairs)])


@kernel
def read_extra(walk: Walk, batch: Sequence[Value], query: Value, key: Value) -> Value:
    """An element of an extra operand."""
    at, steps = [*batch, query, key], [*walk.batch, walk.query, walk.key]
    for index, width, step in zip((query, key), walk.widths, (walk.query_row, walk.key_row), strict=True):
        if step != 0:
            at, steps = [*at, index // width], [*steps, step]
    return read_element(walk, at, steps)


@kernel
def _write_scores(op: AttentionOp, walks: Walks, scores: Matrix) -> None:
    """`for each b.., i, j: the score of the sum of query[i, d] * key[j, d]`."""
    for loops in parallel([*op.batch, op.queries, op.keys]):
        *batch, query, key = loops

        def factor(depth: Value) -> Value:
            left = _read(walks.query, batch, (query, walks.query.query), (depth, walks.query.depth))
            right = _read(walks.key, batch, (key, walks.key.key), (depth, walks.key.depth))
            return cast(left, left.type, scores.element) * cast(right, right.type, scores.element)

        total = value_of(sum(factor(depth) for depth in Box(op.depth)))
        extras = [read_extra(walk, batch, query, key) for walk in walks.extras]
        score = finished(op.score, total, extras, len(loops), lambda axis: loops[axis])
        offset = op.last_key_offset()
        if offset is not None:
            score = score if key <= query + extent(offset) else constant(float("-inf"), scores.element)
        scores.memory()[loops] = score


@kernel
def _normalize(op: AttentionOp, scores: Matrix, weights: Matrix) -> None:
    """`for each b.., i: weights = softmax of the scores`, zero where no key counts if the op says so."""
    for row in parallel([*op.batch, op.queries]):

        def exponential(key: Value) -> Value:
            return exp(scores.memory()[*row, key] - largest)

        largest = max(scores.memory()[*row, key] for key in Box(op.keys))
        total = value_of(sum(exponential(key) for key in Box(op.keys)))
        zero, is_empty = constant(0, scores.element), False
        if op.zero_masked.value.data:
            is_empty = emit(arith.CmpfOp(total, zero, "ule"))  # a sum of exponentials of -inf is not-a-number
        for key in parallel(op.keys):
            share = exponential(key) / total
            weights.memory()[*row, key] = zero if is_empty else share


@kernel
def _add_values(op: AttentionOp, walks: Walks, weights: Matrix) -> None:
    """`for each b.., i, c: the sum of weights[i, j] * values[j, c]`."""
    values, out, wide = walks.values, walks.out, weights.element
    for loops in parallel([*op.batch, op.queries, op.columns]):
        *batch, query, column = loops

        def term(key: Value) -> Value:
            value = _read(values, batch, (key, values.key), (column, values.column))
            return weights.memory()[*batch, query, key] * cast(value, value.type, wide)

        total = value_of(sum(term(key) for key in Box(op.keys)))
        result = finished_result(op, total)
        steps = [stride(step) for step in (*out.batch, out.query, out.column)]
        Strided(builder().buffer(out.value), steps)[loops] = result
