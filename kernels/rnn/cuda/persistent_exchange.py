"""The hidden state on its way from the block that computes a unit to all blocks."""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.kernel.core import StoreOp
from mlirt.dialects.kernel.flagged_word import ReceiveFlaggedOp, SendFlaggedOp, word_type, words_at_once
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.dialects.kernel.fragment_map import FragmentPartOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.tactics.lowering import Lowering
from mlirt.kernels.rnn.cuda.persistent_shape import PersistentShape


class Exchange:
    """Words [2, sequence, unit] in global memory. Flags count from 1; even and odd ones take turns.

    A block sends for a flag only after it has received everything of the one before. So all blocks have received what
    is overwritten: that of the flag before that.
    """

    def __init__(
        self, k: KernelBuilder, shape: PersistentShape, element: Attribute, buffer: SSAValue, thread: SSAValue
    ) -> None:
        self.k, self.shape, self.element, self.thread = k, shape, element, thread
        self.words = k.memory(buffer, word_type(element))

    def send(self, value: SSAValue, flag: SSAValue, sequence: SSAValue, unit: SSAValue) -> None:
        """Send the number of one unit to all blocks."""
        k = self.k
        at = k.add(k.add(self._half(flag), k.mul(sequence, self.shape.units)), unit)
        k.insert(SendFlaggedOp(value, flag, self.words, at))

    def receive(self, flag: SSAValue, hidden: SSAValue) -> None:
        """Put the numbers of all units with a flag into shared memory; the threads share this work."""
        groups = self.shape.batch * self.shape.units // words_at_once(self.element)
        if groups >= self.shape.threads:
            self._receive(flag, hidden, groups)
        else:
            taken = self.k.compare("slt", self.thread, groups)
            self.k.when(taken, lambda: self._receive(flag, hidden, groups))

    def _receive(self, flag: SSAValue, hidden: SSAValue, groups: int) -> None:
        k, shape = self.k, self.shape
        count = words_at_once(self.element)
        per_sequence = shape.units // count
        rounds = -(-groups // shape.threads)
        is_even = rounds == 1 or groups % shape.threads == 0
        numbers = [k.add(self.thread, shape.threads * r) for r in range(rounds)]
        if not is_even:
            numbers[-1] = k.min(numbers[-1], groups - 1)
        half = self._half(flag)
        places = [k.add(half, k.mul(number, count)) for number in numbers]
        found = k.value(ReceiveFlaggedOp(self.words, places, flag, count, self.element))

        def put(r: int) -> None:
            sequence, group = k.div(numbers[r], per_sequence), k.rem(numbers[r], per_sequence)
            at = k.add(k.mul(sequence, shape.pitch), k.mul(group, count))
            part = k.value(FragmentPartOp(found, r * count, count))
            k.insert(StoreFragmentOp(part, hidden, at, range(count), wide=True))

        for r in range(rounds):
            if r < rounds - 1 or is_even:
                put(r)
            else:
                own = k.compare("slt", k.add(self.thread, shape.threads * r), groups)
                k.when(own, lambda: put(rounds - 1))

    def _half(self, flag: SSAValue) -> SSAValue:
        return self.k.mul(self.k.rem(flag, 2), self.shape.batch * self.shape.units)


def new_words(lowering: Lowering, layer: Operation, shape: PersistentShape, element: Attribute) -> SSAValue:
    """A buffer for an exchange, and a launch that clears its flags."""
    type_ = word_type(element)
    count: Dim = 2 * shape.batch * shape.units
    buffer = lowering.placements.scratch(count * byte_width(type_))
    k = lowering.kernel("clear")
    with k.parallel([count]) as (index,):
        zero = k.constant(0, type_)
        assert isinstance(zero.owner, ConstantOp)
        k.insert(StoreOp(zero, k.memory(buffer, type_), [index], [1]))
    k.finish(layer)
    return buffer
