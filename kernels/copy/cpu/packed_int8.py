"""Images of int8 put into blocks of four channels, as a first layer reads them, or of eight, and out of them: the bytes
of a pixel are a word.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import Attribute, SSAValue
from xdsl.utils.hints import isa

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, channels, dims, element_of, halo, is_bool, is_row_major
from mlirt.kernels.lib.language import Value, build, builder, kernel
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.words import Elements, constant, parallel, static_range, stride, strided
from mlirt.kernels.lib.tactics.lowering import Lowering

OPS = (ReformatOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20

_WORDS = {4: i32, 8: i64}
"""The words by the channels of a block."""


def lower(op: ReformatOp, lowering: Lowering) -> bool:
    enters = is_blocked(op.output.type)
    plain, blocks = (op.input, op.output) if enters else (op.output, op.input)
    count = channels(blocks.type)
    if not isinstance(count, int) or not _applies(plain.type, blocks.type):
        return False
    k = lowering.kernel("reformat")
    place = lowering.placements[blocks]
    size = _lanes(blocks)
    words = k.memory(place.buffer, _WORDS[size], place.offset, place.part)
    steps = [step // size for step in place.strides[:-1]]
    build(k, _words if enters else _bytes, op, count, words, steps, _space(blocks, steps))
    k.finish(op)
    return True


def _applies(plain: Attribute, blocks: Attribute) -> bool:
    is_plain = not is_blocked(plain) and is_row_major(plain) and not halo(plain)
    is_int8 = byte_width(element_of(plain)) == 1 and not is_bool(element_of(plain))
    return is_plain and is_int8 and is_blocked(blocks) and dims(blocks)[-1] in _WORDS


def _lanes(blocks: SSAValue) -> int:
    """The channels of a block."""
    size = dims(blocks.type)[-1]
    assert isinstance(size, int)
    return size


def _space(blocks: SSAValue, steps: Sequence[Dim]) -> Sequence[Dim]:
    """What the loops go over; an image whose rows lie one behind the other is one row."""
    *outer, rows, columns, _ = dims(blocks.type)
    # The only column of a tensor is where its row is, whatever its number.
    is_one_row = columns != 1 and steps[-2] == columns * steps[-1]
    return [*outer, 1, rows * columns] if is_one_row else [*outer, rows, columns]


@kernel
def _words(op: ReformatOp, count: int, words: Value, steps: Sequence[Dim], space: Sequence[Dim]) -> None:
    """`word[n, b, h, w] = x[n, 4 b, h, w] | x[n, 4 b + 1, h, w] << 8 | ..`, in which lanes are pixels of a row."""
    size = _lanes(op.output)
    kind = _WORDS[size]
    for batch, block, row, column in parallel(space):

        def byte(lane: int) -> Value:
            """The byte of a lane at its place in the word; zero beyond the last channel."""
            channel, is_certain = block * size + lane, count % size == 0 or count <= size
            safe = channel if is_certain else min(channel, count - 1)
            loaded = builder().ready(Elements(op.input)[batch, safe, row, column])
            found = emit(arith.ExtUIOp(loaded, kind))
            found = found if is_certain or channel < count else constant(0, kind)
            return found << 8 * lane if lane else found

        word = byte(0)
        for lane in static_range(1, min(size, count)):
            word = word | byte(lane)
        strided(words, *[stride(step) for step in steps])[batch, block, row, column] = word


@kernel
def _bytes(op: ReformatOp, count: int, words: Value, steps: Sequence[Dim], space: Sequence[Dim]) -> None:
    """`y[n, 4 b, h, w] = word[n, b, h, w]`, `y[n, 4 b + 1, h, w] = word[n, b, h, w] >> 8`, .., lanes as above."""
    size = _lanes(op.input)
    for batch, block, row, column in parallel(space):
        word = strided(words, *[stride(step) for step in steps])[batch, block, row, column]
        for lane in static_range(min(size, count)):
            channel = block * size + lane
            if count % size == 0 or count <= size or channel < count:
                Elements(op.output)[batch, channel, row, column] = _lowest_byte(word >> 8 * lane, op.output.type)


def _lowest_byte(word: Value, of: Attribute) -> Value:
    element = element_of(of)
    assert isa(element, IntegerType)
    return emit(arith.TruncIOp(word, element))
