"""From products of queries and keys to scores: scale, mask and bias on the accumulators of a thread."""

from __future__ import annotations

from collections.abc import Sequence
from math import log2
from typing import TypeAlias

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, f32

from mlirt.dialects.fused.attention import AttentionOp
from mlirt.dialects.fused.fused_op import is_identity, yielded
from mlirt.dialects.kernel.accumulators import columns_of
from mlirt.dialects.symbolic import Dim
from mlirt.kernels.attention.cuda.extra_reads import ExtraReads, Piece, Rows
from mlirt.kernels.attention.cuda.flash_shape import QueryTile
from mlirt.kernels.attention.cuda.flash_tiles import batch_offset
from mlirt.kernels.attention.walks import Walk
from mlirt.kernels.lib.epilogue import finished
from mlirt.kernels.lib.language import Index, Value, builder, kernel, value_of
from mlirt.kernels.lib.language.simt_words import Access, element_at, fragment, load_fragment, named
from mlirt.kernels.lib.language.words import extent, place, static_range, stride

_LOG2_E = log2(2.718281828459045)
_MAX_KEPT = 16  # elements of a row that a thread keeps in registers for all tiles

# For each row of a thread, the pieces of an extra operand.
Fragments: TypeAlias = list[list[Value]]


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
        self.reads = [ExtraReads.of(walk, self._offsets(), shape.keys) for walk in extras]
        self.kept = [self._kept(number) for number in range(len(extras))] if self.factor is None else []

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

    def _kept(self, number: int) -> Fragments | None:
        """The elements of an extra operand that all tiles read, where registers hold them."""
        walk, reads = self.extras[number][0], self.reads[number]
        is_small = sum(len(piece.offsets) for piece in reads.pieces) <= _MAX_KEPT
        return self._read(number, place(0)) if reads.repeats(walk) and is_small else None

    @kernel
    def read(self, tile: Value) -> list[Fragments]:
        """For each extra operand the thread's elements of a tile by rows: read while the products are computed."""
        if self.factor is not None:
            return []
        found: list[Fragments] = []
        for number, kept in enumerate(self.kept):
            found.append(self._read(number, tile) if kept is None else kept)
        return found

    def _offsets(self) -> list[int]:
        """The keys of the thread's elements of a row, from its first one on: two in each tile of 8 columns."""
        keys, per_row = self._keys()
        return [key for position, key in enumerate(keys[: per_row * 2]) if position % 4 < 2]

    def _keys(self) -> tuple[Sequence[int], int]:
        """The keys of the thread's accumulators, and how many of these are in one of its rows."""
        rows, per_row = self.shape.warp_rows, self.shape.keys // 4
        return columns_of(per_row * 2 * rows, rows), per_row

    @kernel
    def scores(self, products: Value, tile: Value, read: Sequence[Fragments]) -> Value:
        """The score of each product; one that is only scaled stays as it is, as `scale` does that."""
        if self.factor is not None:
            return products
        keys, per_row = self._keys()
        first_key, offsets = self.first_key(tile), self._offsets()
        scores = list[Value]()
        for position, key in enumerate(keys):
            row, number = 2 * (position // (per_row * 2)) + position % 4 // 2, offsets.index(key)
            more = [self._element(extra, read[extra][row], number) for extra in static_range(len(read))]
            scores.append(self._score(element_at(products, position), more, row, first_key + key))
        return fragment(scores)

    def _score(self, product: Value, more: Sequence[Value], row: int, key: Value) -> Value:
        indices = [*self.batch, self.queries[row], key]
        return finished(self.op.score, product, more, len(indices), lambda axis: value_of(indices[axis]))

    def _element(self, extra: int, fragments: Sequence[Value], number: int) -> Value:
        """The element of an extra operand for the key of a number."""
        piece, element = self.reads[extra].places[number]
        return element_at(fragments[piece], element)

    @kernel
    def _read(self, number: int, tile: Value) -> Fragments:
        """For each row of the thread, its elements of an extra operand; zeros beyond the last query and key."""
        (walk, buffer, base), reads, found = self.extras[number], self.reads[number], list[list[Value]]()
        same = walk.query == 0 and walk.query_row == 0
        for query in self.queries[:1] if same else self.queries:
            row = base + query * stride(walk.query)
            if walk.query_row != 0:
                row = row + query // walk.widths[0] * stride(walk.query_row)
            fragments = list[Value]()
            for piece in reads.pieces:
                count = self._count(walk, reads, piece, tile)
                if not same and not self._whole_queries():
                    all_ = len(piece.offsets) if count is None else count
                    count = all_ if query < extent(self.op.queries) else 0
                at = row + self._key_place(walk, reads, piece, tile)
                step = walk.key if reads.rows is Rows.NONE else 1
                fragments.append(load_fragment(buffer, at, _elements(step, piece.offsets, count)))
            found.append(fragments)
        return found * (len(self.queries) // len(found))

    @kernel
    def _key_place(self, walk: Walk, reads: ExtraReads, piece: Piece, tile: Value) -> Value:
        """Where a piece starts, counted from that of the query."""
        at, width = (self.first_key(tile) + piece.keys) * stride(walk.key), walk.widths[1]
        if reads.rows is Rows.NONE:
            return at
        if reads.rows is Rows.IN_TILE:
            if reads.repeats(walk):
                return value_of(self.lane_key * stride(walk.key))
            row = tile * (self.shape.keys // width)
        elif reads.rows is Rows.AROUND_TILE:
            row = tile * self.shape.keys // width
        else:
            row = self._first_of_group(reads, piece, tile) // width
        return value_of(at + row * stride(walk.key_row))

    @kernel
    def _first_of_group(self, reads: ExtraReads, piece: Piece, tile: Value) -> Value:
        """A key that is in one row with the others of a piece."""
        return (self.first_key(tile) if reads.group == 1 else tile * self.shape.keys) + piece.keys

    @kernel
    def _count(self, walk: Walk, reads: ExtraReads, piece: Piece, tile: Value) -> Index | None:
        """How many elements of a piece belong to keys that exist; None: all."""
        most, keys = len(piece.offsets), extent(self.op.keys)
        if self._whole_keys() or reads.repeats(walk) or reads.rows is Rows.AROUND_TILE:
            return None
        if reads.rows is Rows.BY_GROUP:
            return most if self._first_of_group(reads, piece, tile) < keys else 0
        if walk.key == 0:
            if reads.rows is Rows.NONE:
                return None
            rows = keys // walk.widths[1] - tile * (self.shape.keys // walk.widths[1])
            return min(max(rows, 0), most)
        left = max(keys - self.first_key(tile), 0)
        return min(left // 8 * 2 + min(left % 8, 2), most)

    def _whole_keys(self) -> bool:
        return isinstance(self.op.keys, int) and self.op.keys % self.shape.keys == 0

    def _whole_queries(self) -> bool:
        return isinstance(self.op.queries, int) and self.op.queries % self.shape.queries == 0


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
