"""The hidden state on its way from the block that computes a unit to all blocks."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.kernel.flagged_word import ReceiveFlaggedOp, SendFlaggedOp, word_type, words_at_once
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.language import Value, build, builder, kernel, value_of
from mlirt.kernels.lib.language.context import emit
from mlirt.kernels.lib.language.simt_words import Access, part_of, store_fragment
from mlirt.kernels.lib.language.words import parallel, static_range
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cuda.persistent_shape import PersistentShape


@dataclass(frozen=True, eq=False)
class Exchange:
    """Words [2, sequence, unit] in global memory. Flags count from 1; even and odd ones take turns.

    A block sends for a flag only after it has received everything of the one before. So all blocks have received what
    is overwritten: that of the flag before that.
    """

    shape: PersistentShape
    element: Attribute
    thread: Value
    words: Value

    @kernel
    def send(self, value: Value, flag: Value, sequence: Value, unit: Value) -> None:
        """Send the number of one unit to all blocks."""
        at = self._half(flag) + sequence * self.shape.units + unit
        builder().insert(SendFlaggedOp(value, flag, self.words, at))

    @kernel
    def receive(self, flag: Value, hidden: Value) -> None:
        """Put the numbers of all units with a flag into shared memory; the threads share this work."""
        groups = self.shape.batch * self.shape.units // words_at_once(self.element)
        if groups >= self.shape.threads or self.thread < groups:
            self._receive(flag, hidden, groups)

    @kernel
    def _receive(self, flag: Value, hidden: Value, groups: int) -> None:
        shape, count = self.shape, words_at_once(self.element)
        rounds = -(-groups // shape.threads)
        is_even = rounds == 1 or groups % shape.threads == 0
        numbers = [self.thread + shape.threads * r for r in static_range(rounds)]
        if not is_even:
            numbers[-1] = value_of(min(numbers[-1], groups - 1))
        half = self._half(flag)
        places = [half + number * count for number in numbers]
        found = emit(ReceiveFlaggedOp(self.words, places, flag, count, self.element))
        for r in static_range(rounds):
            if r < rounds - 1 or is_even or self.thread + shape.threads * r < groups:
                at = numbers[r] // (shape.units // count) * shape.pitch + numbers[r] % (shape.units // count) * count
                store_fragment(part_of(found, r * count, count), hidden, at, Access(static_range(count), wide=True))

    @kernel
    def _half(self, flag: Value) -> Value:
        return flag % 2 * (self.shape.batch * self.shape.units)


def new_words(lowering: Lowering, layer: Operation, shape: PersistentShape, element: Attribute) -> SSAValue:
    """A buffer for an exchange, and a launch that clears its flags."""
    type_ = word_type(element)
    count = 2 * shape.batch * shape.units
    buffer = lowering.placements.scratch(count * byte_width(type_))
    k = lowering.kernel("clear")
    build(k, _clear, k.memory(buffer, type_), count)
    k.finish(layer)
    return buffer


@kernel
def _clear(words: Value, count: int) -> None:
    for word in parallel(count):
        words[word] = 0
