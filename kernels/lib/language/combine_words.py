"""Words of the kernel language for associative combines of tuples: of rows, of running totals, of threads of a warp."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.combine import COMBINES, ReduceKind, identity
from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.tensor_types import element_name
from mlirt.kernels.lib.language.context import builder, emit
from mlirt.kernels.lib.language.simt_words import shuffle_xor
from mlirt.kernels.lib.language.values import Value, value_of

__all__ = ["Combiner", "combiner_of", "first_largest"]


@dataclass(frozen=True, eq=False)
class Combiner:
    """What two sets of elements come to, of what each comes to: tuples of numbers, here `Value`s for tuples of one.

    `pair` is associative; `neutral` is what no element comes to, and no op combines it with anything.
    """

    neutral: Sequence[Value]
    pair: Callable[[Sequence[Value], Sequence[Value]], Sequence[SSAValue]]

    def tuples(self, *parts: Sequence[Value]) -> list[Value]:
        """What some sets of elements come to together, in their order."""
        found = list(parts[0])
        for part in parts[1:]:
            if found == list(self.neutral):
                found = list(part)
            elif list(part) != list(self.neutral):
                found = [value_of(one) for one in self.pair(found, part)]
        return found

    def of(self, *parts: Value) -> Value:
        """The same of single numbers."""
        (found,) = self.tuples(*[(part,) for part in parts])
        return found

    def over_lanes(self, own: Value, masks: Sequence[int]) -> Value:
        """What the threads of a warp whose lanes differ by these masks come to, in each of them."""
        for mask in masks:
            own = self.of(own, shuffle_xor(own, mask))
        return own


def combiner_of(kind: ReduceKind, element: Attribute) -> Combiner:
    """A kind of reduction on numbers of an element type, which are ready for arithmetic."""
    op, start = COMBINES[kind].op(element), identity(kind, element_name(element))
    neutral = value_of(builder().constant(start, scalar_type(element)))
    return Combiner((neutral,), lambda a, b: [emit(op(a[0], b[0]))])


def first_largest(neutral: Sequence[Value]) -> Combiner:
    """Of (key, what belongs to it..) the one with the largest key, of equal ones the first."""

    def pair(a: Sequence[Value], b: Sequence[Value]) -> list[SSAValue]:
        is_larger = builder().compare("sgt", b[0], a[0])
        return [builder().select(is_larger, other, one) for one, other in zip(a, b, strict=True)]

    return Combiner(neutral, pair)
