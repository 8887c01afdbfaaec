"""From products of queries and keys to scores: scale, mask and bias on the accumulators of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32
from xdsl.ir import SSAValue

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import is_identity, yielded
from mlirt.dialects.kernel.accumulators import columns_of
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.attention.cuda.flash_shape import QueryTile
from mlirt.kernels.attention.cuda.flash_tiles import batch_offset
from mlirt.kernels.attention.walks import Walk
from mlirt.kernels.lib.epilogue import finished
from mlirt.kernels.lib.language import Index, Value, builder, kernel, value_of
from mlirt.kernels.lib.language.simt_words import Access, element_at, fragment, load_fragment, named
from mlirt.kernels.lib.language.words import extent, place, stride

_LOG2_E = log2(2.718281828459045)


class FlashScores:
    """The scores of a warp's queries with a tile of keys. Exponentials are taken of `scale` times a score, to base 2.

    `first_query` is the query of the thread's first row.
    """

    def __init__(
        self,
        op: AttentionOp,
        shape: QueryTile,
        extras: Sequence[Walk],
        batch: Sequence[Value],
        first_query: Value,
        lane: Value,
    ) -> None:
        self.op, self.shape, self.batch = op, shape, batch
        self.factor = only_scale(op)
        k = builder()
        self.scale = named(k.scalar((self.factor or 1.0) * _LOG2_E, f32), "scale")
        self.queries, self.lane_key = self._place(first_query, lane)
        self.extras = [(walk, k.buffer(walk.value, walk.offset), batch_offset(batch, walk)) for walk in extras]

    @kernel
    def _place(self, first_query: Value, lane: Value) -> tuple[list[Value], Value]:
        """The queries of the thread's rows, and its first key in a tile."""
        queries = [first_query + (16 * row + 8 * half) for row in range(self.shape.warp_rows) for half in range(2)]
        return queries, lane % 4 * 2

    @kernel
    def first_key(self, tile: Value) -> Value:
        """The key of the thread's first accumulator."""
        return tile * self.shape.keys + self.lane_key

    @kernel
    def limits(self) -> list[Value]:
        """For each row of the thread, the first key that does not count."""
        keys, offset = extent(self.op.keys), self.op.last_key_offset()
        if offset is None:
            return [keys] * len(self.queries)
        return [min(keys, query + extent(offset + 1)) for query in self.queries]

    @kernel
    def read(self, tile: Value) -> list[list[Value]]:
        """For each extra operand the thread's elements of a tile by rows: read while the products are computed."""
        if self.factor is not None:
            return []
        first_key, offsets = self.first_key(tile), self._offsets()
        return [self._read(extra, first_key, offsets) for extra in self.extras]

    def _offsets(self) -> list[int]:
        """The keys of the thread's elements of a row, from its first one on: two in each tile of 8 columns."""
        keys, per_row = self._keys()
        return [key for position, key in enumerate(keys[: per_row * 2]) if position % 4 < 2]

    def _keys(self) -> tuple[Sequence[int], int]:
        """The keys of the thread's accumulators, and how many of these are in one of its rows."""
        rows, per_row = self.shape.warp_rows, self.shape.keys // 4
        return columns_of(per_row * 2 * rows, rows), per_row

    @kernel
    def scores(self, products: Value, tile: Value, read: Sequence[Sequence[Value]]) -> Value:
        """The score of each product; one that is only scaled stays as it is, as `scale` does that."""
        if self.factor is not None:
            return products
        keys, per_row = self._keys()
        first_key, offsets = self.first_key(tile), self._offsets()
        scores = list[Value]()
        for position, key in enumerate(keys):
            row, number = 2 * (position // (per_row * 2)) + position % 4 // 2, offsets.index(key)
            more = [element_at(fragments[row], number) for fragments in read]
            scores.append(self._score(element_at(products, position), more, row, first_key + key))
        return fragment(scores)

    def _score(self, product: Value, more: Sequence[Value], row: int, key: Value) -> Value:
        indices = [*self.batch, self.queries[row], key]
        return finished(self.op.score, product, more, len(indices), lambda axis: value_of(indices[axis]))

    @kernel
    def _read(self, extra: tuple[Walk, SSAValue, Value], first_key: Value, offsets: Sequence[int]) -> list[Value]:
        """For each row of the thread, its elements of an extra operand; zeros beyond the last query and key."""
        (walk, buffer, base), found = extra, list[Value]()
        count = self._keys_left(first_key, len(offsets)) if walk.key != 0 else None
        for query in self.queries[:1] if walk.query == 0 else self.queries:
            at = base + (query * stride(walk.query) + first_key * stride(walk.key))
            valid = count
            if walk.query != 0 and not self._whole_queries():
                valid = (len(offsets) if count is None else count) if query < extent(self.op.queries) else 0
            found.append(load_fragment(buffer, at, _elements(walk.key, offsets, valid)))
        return found * (len(self.queries) // len(found))

    def _whole_queries(self) -> bool:
        return isinstance(self.op.queries, int) and self.op.queries % self.shape.queries == 0

    @kernel
    def _keys_left(self, first_key: Value, most: int) -> Index | None:
        """How many of a row's elements, two in each tile of 8 keys, belong to a key that exists; None: all."""
        if isinstance(self.op.keys, int) and self.op.keys % self.shape.keys == 0:
            return None
        left = max(extent(self.op.keys) - first_key, 0)
        return min(left // 8 * 2 + min(left % 8, 2), most)


def _elements(step: Dim, offsets: Sequence[int], valid: Index | None) -> Access:
    """Elements that lie `step` apart."""
    if isinstance(step, int):
        return Access([offset * step for offset in offsets], valid=valid)
    return Access(offsets, value_of(place(stride(step))), valid)


def only_scale(op: AttentionOp) -> float | None:
    """The positive number that a score is a product times, where that is all; None for other scores."""
    if is_identity(op.score):
        return 1.0
    ops = list(op.score.block.ops)
    product = op.score.block.args[0]
    if (
        len(ops) != 3
        or not isinstance(ops[1], arith.MulfOp | arith.DivfOp)
        or list(yielded(op.score)) != [ops[1].result]
    ):
        return None
    operands = list(ops[1].operands)
    if isinstance(ops[1], arith.MulfOp) and operands[1] is product:
        operands.reverse()
    if operands[0] is not product or not isinstance(operands[1].owner, arith.ConstantOp):
        return None
    value = operands[1].owner.value
    number = value.value.data if isinstance(value, FloatAttr) else 0.0
    if not 0 < number < float("inf"):
        return None
    return number if isinstance(ops[1], arith.MulfOp) else 1 / number
