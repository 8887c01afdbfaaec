"""Images of int8 put into blocks of four channels, as a first layer reads them: the bytes of a pixel are a word."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from mlirt.dialects.blocked_layout import is_blocked
from mlirt.dialects.fused.reformat import ReformatOp
from mlirt.dialects.kernel.core import StoreOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, channels, dims, element_of, halo, is_bool, is_row_major
from mlirt.kernels.lib.tactics.lowering import KernelBuilder, Lowering

OPS = (ReformatOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 20

_WORD = 4


def lower(op: ReformatOp, lowering: Lowering) -> bool:
    """`word[n, b, h, w] = x[n, 4 b, h, w] | x[n, 4 b + 1, h, w] << 8 | ..`, in which lanes are pixels of a row."""
    count = channels(op.output.type)
    if not isinstance(count, int) or not _applies(op):
        return False
    place = lowering.placements[op.output]
    steps: list[Dim] = [step // _WORD for step in place.strides[:-1]]
    k = lowering.kernel("reformat")
    words = k.memory(place.buffer, i32, place.offset, place.part)
    with k.parallel(dims(op.output.type)[:-1]) as (batch, block, row, column):
        word: SSAValue | None = None
        for lane in range(min(_WORD, count)):
            byte = _byte(k, op, count, (batch, block, row, column), lane)
            word = byte if word is None else k.value(arith.OrIOp(word, byte))
        assert word is not None
        k.insert(StoreOp(word, words, [batch, block, row, column], [k.stride(step) for step in steps]))
    k.finish(op)
    return True


def _applies(op: ReformatOp) -> bool:
    is_plain = not is_blocked(op.input.type) and is_row_major(op.input.type) and not halo(op.input.type)
    is_int8 = byte_width(element_of(op.input.type)) == 1 and not is_bool(element_of(op.input.type))
    return is_plain and is_int8 and is_blocked(op.output.type) and dims(op.output.type)[-1] == _WORD


def _byte(
    k: KernelBuilder, op: ReformatOp, count: int, place: tuple[SSAValue, SSAValue, SSAValue, SSAValue], lane: int
) -> SSAValue:
    """The byte of a lane at its place in the word; zero beyond the last channel."""
    batch, block, row, column = place
    channel = k.add(k.mul(block, _WORD), lane)
    is_certain = count % _WORD == 0 or count <= _WORD
    safe = channel if is_certain else k.min(channel, count - 1)
    loaded = k.ready(k.load(op.input, [batch, safe, row, column]))
    byte = k.value(arith.ExtUIOp(loaded, i32))
    if not is_certain:
        byte = k.select(k.compare("slt", channel, count), byte, k.constant(0, i32))
    return k.value(arith.ShLIOp(byte, k.constant(8 * lane, i32))) if lane else byte
