"""The hidden state on its way from the block that computes a unit to all blocks."""

from __future__ import annotations

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.kernel.core import StoreOp
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.dialects.kernel.fragment_map import FragmentPartOp
from mlirt.dialects.kernel.stamped_word import AwaitPostsOp, PostOp, word_type, words_at_once
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width
from mlirt.passes.lowering.kernel_builder import KernelBuilder
from mlirt.passes.lowering.lowering import Lowering
from mlirt.passes.lowering.rnn.persistent_shape import PersistentShape


class Exchange:
    """Words [2, sequence, unit] in global memory. Stamps count from 1; even and odd ones take turns.

    A block posts for a stamp only after it has received everything of the one before. So all blocks have received what
    is overwritten: that of the stamp before that.
    """

    def __init__(
        self, k: KernelBuilder, shape: PersistentShape, element: Attribute, buffer: SSAValue, thread: SSAValue
    ) -> None:
        self.k, self.shape, self.element, self.thread = k, shape, element, thread
        self.words = k.memory(buffer, word_type(element))

    def post(self, value: SSAValue, stamp: SSAValue, sequence: SSAValue, unit: SSAValue) -> None:
        """Send the number of one unit to all blocks."""
        k = self.k
        at = k.add(k.add(self._half(stamp), k.mul(sequence, self.shape.units)), unit)
        k.insert(PostOp(value, stamp, self.words, at))

    def receive(self, stamp: SSAValue, hidden: SSAValue) -> None:
        """Put the numbers of all units with a stamp into shared memory; the threads share this work."""
        groups = self.shape.batch * self.shape.units // words_at_once(self.element)
        if groups >= self.shape.threads:
            self._receive(stamp, hidden, groups)
        else:
            taken = self.k.compare("slt", self.thread, groups)
            self.k.when(taken, lambda: self._receive(stamp, hidden, groups))

    def _receive(self, stamp: SSAValue, hidden: SSAValue, groups: int) -> None:
        k, shape = self.k, self.shape
        count = words_at_once(self.element)
        per_sequence = shape.units // count
        rounds = -(-groups // shape.threads)
        is_even = rounds == 1 or groups % shape.threads == 0
        numbers = [k.add(self.thread, shape.threads * r) for r in range(rounds)]
        if not is_even:
            numbers[-1] = k.min(numbers[-1], groups - 1)
        half = self._half(stamp)
        places = [k.add(half, k.mul(number, count)) for number in numbers]
        found = k.value(AwaitPostsOp(self.words, places, stamp, count, self.element))

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

    def _half(self, stamp: SSAValue) -> SSAValue:
        return self.k.mul(self.k.rem(stamp, 2), self.shape.batch * self.shape.units)


def new_words(lowering: Lowering, layer: Operation, shape: PersistentShape, element: Attribute) -> SSAValue:
    """A buffer for an exchange, and a launch that clears its stamps."""
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
