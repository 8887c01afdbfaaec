"""Few rows times weights of few bits on a GPU: a warp has some columns, and reads 16 bytes of codes a lane at a time.

Each number of the input is read for several columns; codes become floats by the bits of 2^23 + code.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32

from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.packed_contraction import PackedMatmulOp
from mlirt.dialects.packed_codes import WORD_BITS
from mlirt.dialects.symbolic import Dim, ceil_div, product
from mlirt.dialects.tensor_types import dims, element_of, is_half, rank
from mlirt.kernels.lib.cuda.tiles.alignment import widest_access
from mlirt.kernels.lib.cuda.tiles.results import Epilogue
from mlirt.kernels.lib.epilogue import store_finished
from mlirt.kernels.lib.language import Index, Value, build, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import Access, block_id, element_at, load_fragment, shuffle_xor, thread_id
from mlirt.kernels.lib.language.words import cast, constant, size, static_range, widened
from mlirt.kernels.lib.language.words import place as value_at
from mlirt.kernels.lib.loops.loop_nest import Affine, NestCode
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

OPS = (PackedMatmulOp,)
TARGETS = frozenset({"cuda"})
PRIORITY = 20

_WARP, _WARPS = 32, 4
_PIECE_BYTES, _WORDS = 16, 4
_PIECE = tuple(range(_WORDS))
_NEIGHBOURS = tuple(range(16))
_GROUP_ROWS, _MAX_ROWS = 4, 8
# Blocks that fill the device leave it to warps to have two columns.
_BLOCKS_PER_PROCESSOR = 2
_EXPONENT = 0x4B000000
_MANTISSA_BITS, _SIGN_BIT = 23, 31
_FLOAT4_SCALE = 2.0**126
"""Of a 4-bit float whose bits are the lowest of the exponent and the highest of the mantissa of a float32."""
_WHOLE = float(1 << 23)
"""The float32 numbers from here on are the whole ones: the lowest bits of `_EXPONENT | code` are the code."""


def lower(op: PackedMatmulOp, lowering: Lowering) -> bool:
    depth, bits, block = op.depth, op.bits.value.data, op.block.value.data
    per_word = WORD_BITS // bits
    if not isinstance(depth, int) or (block % per_word and block < depth) or accumulator_type(op.epilogue) != f32:
        return False
    if not (element_of(op.lhs.type) == f32 or is_half(element_of(op.lhs.type))):
        return False
    if any(lowering.known(value) is None for value in (op.codes, op.scale, op.zero)):
        return False
    if lowering.placements[op.lhs].strides[-1] != 1:
        return False
    k = lowering.kernel("matmul")
    rows = product(dims(op.output.type)[:-1])
    group = rows if isinstance(rows, int) and rows <= _MAX_ROWS else _GROUP_ROWS
    (columns, *_) = dims(op.codes.type)
    assert isinstance(columns, int)
    wide = -(-columns // (2 * _WARPS)) >= _BLOCKS_PER_PROCESSOR * lowering.target.gpu.processors
    shape = _Shape(depth, bits, block, columns, rows, group, 2 if wide and group <= _GROUP_ROWS else 1)
    _RowsKernel(k, op, lowering, shape).write()
    tiles = ceil_div(columns, _WARPS * shape.columns_each) * ceil_div(rows, group)
    k.finish(op, grid=[tiles, 1, 1], block=[_WARP * _WARPS])
    return True


def pack_pieces(data: Array) -> Array:
    """Codes `[columns, bytes]` as words of 32 bits `[columns, words]`, filled up to pieces of 16 bytes."""
    import numpy as np

    columns, count = data.shape
    width = -(-count // _PIECE_BYTES) * _PIECE_BYTES
    padded = np.zeros((columns, width), np.uint8)
    padded[:, :count] = data
    return padded.view(np.int32)


@dataclass(frozen=True)
class _Shape:
    """`group` rows are computed by a warp at once, of which each has `columns_each` columns."""

    depth: int
    bits: int
    block: int
    columns: int
    rows: Dim
    group: int
    columns_each: int

    @property
    def per_word(self) -> int:
        return WORD_BITS // self.bits

    @property
    def per_piece(self) -> int:
        return _WORDS * self.per_word

    @property
    def pieces(self) -> int:
        return -(-self.depth // self.per_piece)

    @property
    def blocks(self) -> int:
        return -(-self.depth // self.block)


class _RowsKernel:
    """The kernel under construction."""

    def __init__(self, k: KernelBuilder, op: PackedMatmulOp, lowering: Lowering, shape: _Shape) -> None:
        self.k, self.op, self.shape = k, op, shape
        places = lowering.placements
        packed = lowering.packed(op.codes, pack_pieces)
        self.row_words = packed.array.shape[1]
        self.codes = k.weights(packed, "codes")
        self.scale, self.zero = (value_of(k.buffer(value, places[value].offset)) for value in (op.scale, op.zero))
        steps = places[op.lhs].strides
        last = rank(op.output.type) - 1
        lhs = Affine(op.lhs, (*steps[:-1], 0), places[op.lhs].offset)
        nest = Epilogue(op).nest(lowering, frozenset({last}), [lhs])
        self.code = NestCode(k, nest)
        self.outer = [extent for extent, group in zip(nest.extents, nest.groups, strict=True) if last not in group]
        self.has_columns = len(self.outer) < len(nest.extents)  # a loop of length 1 is none
        self.wide = widest_access(op.lhs, steps[:-1], lowering)
        self.element = element_of(op.lhs.type)

    def write(self) -> None:
        build(self.k, self._columns)

    @kernel
    def _columns(self) -> None:
        shape = self.shape
        tiles = -(-shape.columns // (_WARPS * shape.columns_each))
        lane, warp, block = thread_id() % _WARP, thread_id() // _WARP, block_id()
        first = ((block % tiles) * _WARPS + warp) * shape.columns_each
        row = (block // tiles) * shape.group
        # Beyond the edge the last column and the last row are computed again, and not stored.
        columns = [min(first + each, shape.columns - 1) for each in static_range(shape.columns_each)]
        rows = [self._place(row + number) for number in static_range(shape.group)]
        totals = self._totals(lane, columns, rows)
        for mask in (16, 8, 4, 2, 1):
            totals = [[total + shuffle_xor(total, mask) for total in of_row] for of_row in totals]
        for number, (place, of_row) in enumerate(zip(rows, totals, strict=True)):
            for each, total in enumerate(of_row):
                if lane == number * shape.columns_each + each:
                    self._store(total, row + number, place, first + each)

    @kernel
    def _place(self, row: Index) -> list[Value]:
        """The indices of the loops over rows; those of the last row for one beyond it."""
        outer = self.outer
        if not outer:
            return []
        left = min(row, size("rows", self.shape.rows) - 1)
        place: list[Value] = []
        for extent in reversed(outer[1:]):
            place = [value_at(left % size(f"extent{len(place)}", extent)), *place]
            left = left // size(f"extent{len(place) - 1}", extent)
        return [value_at(left), *place]

    @kernel
    def _totals(self, lane: Value, columns: Sequence[Index], rows: Sequence[Sequence[Value]]) -> list[list[Value]]:
        shape = self.shape
        totals = [[constant(0.0, f32) for _ in columns] for _ in rows]
        starts = [value_of(self.code.linear(len(self.op.extras) + 1, [*place])) for place in rows]
        for step in range((shape.pieces + _WARP - 1) // _WARP):
            piece = step * _WARP + lane
            if piece < shape.pieces:
                words = [self._words(column, piece) for column in columns]
                for word in static_range(_WORDS):
                    k0 = piece * shape.per_piece + word * shape.per_word
                    if shape.depth % shape.per_piece == 0 or k0 < shape.depth:
                        inputs = [self._inputs(start, k0) for start in starts]
                        for each, column in enumerate(columns):
                            scale, shift = self._coefficients(column, k0)
                            code = element_at(words[each], word)
                            weights = [self._number(code, u, shift) for u in static_range(shape.per_word)]
                            for number, x in enumerate(inputs):
                                part = x[0] * weights[0]
                                for u in static_range(1, shape.per_word):
                                    part = part + x[u] * weights[u]
                                totals = _with(totals, number, each, totals[number][each] + part * scale)
        return totals

    @kernel
    def _words(self, column: Index, piece: Value) -> Value:
        at = column * self.row_words + piece * _WORDS
        return load_fragment(self.codes, at, Access(_PIECE, wide=True))

    @kernel
    def _inputs(self, start: Value, k0: Value) -> list[Value]:
        """The numbers of a row that a word of codes is multiplied with; zeros beyond the end."""
        shape, count = self.shape, self.shape.per_word
        memory = self.code.pointer(len(self.op.extras) + 1)
        wide = min(self.wide, count)
        values: list[Value] = []
        for first in static_range(0, count, wide):
            valid = None if shape.depth % shape.per_word == 0 else shape.depth - k0 - first
            found = load_fragment(memory, start + k0 + first, Access(_NEIGHBOURS[:wide], valid=valid, wide=wide > 1))
            values = [*values, *[cast(element_at(found, u), self.element, f32) for u in static_range(wide)]]
        return values

    @kernel
    def _coefficients(self, column: Index, k0: Value) -> tuple[Value, Value]:
        """The scale of a word's block, and 2^23 plus its zero point where that is a whole number."""
        shape = self.shape
        at = column * shape.blocks + k0 // shape.block
        scale = cast(self.scale[at], element_of(self.op.scale.type), f32)
        is_one = dims(self.op.zero.type) == (1, 1)
        zero_at = 0 * at if is_one else at
        zero = widened(self.zero[zero_at], f32)
        return scale, zero if self._has_fractions() else zero + _WHOLE

    @kernel
    def _number(self, code: Value, u: int, shift: Value) -> Value:
        if self.op.float4 is not None:
            return self._float4(code, u)
        shape = self.shape
        moved = code >> u * shape.bits
        number = emit(arith.BitcastOp((moved & ((1 << shape.bits) - 1)) | _EXPONENT, f32))
        return (number - _WHOLE) - shift if self._has_fractions() else number - shift

    @kernel
    def _float4(self, code: Value, u: int) -> Value:
        """Without its scale of 2^126: also what is below 1, where float32 has numbers without a leading one."""
        moved = code >> u * self.shape.bits
        bits = ((moved & 7) << _MANTISSA_BITS - 1) | ((moved & 8) << _SIGN_BIT - 3)
        return emit(arith.BitcastOp(bits, f32)) * _FLOAT4_SCALE

    def _has_fractions(self) -> bool:
        element = element_of(self.op.zero.type)
        return element == f32 or is_half(element)

    @kernel
    def _store(self, total: Value, row: Value, place: Sequence[Value], column: Value) -> None:
        if column < self.shape.columns and row < size("rows", self.shape.rows):
            at = [*place, column] if self.has_columns else place
            store_finished(self.op.epilogue, self.code, 0, total, at)


def _with(totals: Sequence[Sequence[Value]], number: int, each: int, total: Value) -> list[list[Value]]:
    """The same totals but for one."""
    return [
        [total if (i, j) == (number, each) else old for j, old in enumerate(of_row)] for i, of_row in enumerate(totals)
    ]
