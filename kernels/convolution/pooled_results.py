"""The loop over the places of a pooling window around what a direct convolution computes for one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.pooling import FIRST
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.fused.window import WindowKind
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.lib.builder.kernel_builder import Stride
from mlirt.kernels.lib.language import Value, kernel
from mlirt.kernels.lib.language.words import cast, constant, stride
from mlirt.kernels.lib.language.words import place as at
from mlirt.kernels.lib.loops.loop_nest import Affine

# (place in what is summed up, place in the window) -> a value.
ValueAt = Callable[[Sequence[Value], Sequence[Value]], Value]


class Pooled:
    """The windows of an op; one without pooling has windows of one place each, without a loop.

    `operands` are the extra operands over the dimensions of the result, as they lie at the first place of a window.
    """

    def __init__(self, op: ConvolutionOp, extras: Sequence[Affine]) -> None:
        self._op, self._extras = op, extras
        self._sizes = () if op.pooling is None else op.pooling.sizes()
        self._box = () if op.totals is None else op.totals.sizes()
        self.operands = [Affine(one.value, self._between_windows(one), one.offset) for one in extras]

    def _between_windows(self, one: Affine) -> tuple[Dim, ...]:
        steps = list(one.steps)
        for sizes in (self._sizes, self._box):
            for axis, size in enumerate(sizes):
                steps[FIRST + axis] = steps[FIRST + axis] * size
        return tuple(steps)

    @kernel
    def within(self, number: int, places: Sequence[Value]) -> list[tuple[Value, Stride]]:
        """How an extra operand moves on to a place of a window."""
        steps = self._extras[number].steps[FIRST:]
        return [(place, stride(step)) for place, step in zip(places, steps, strict=False) if step != 0]

    @kernel
    def over_windows(self, loops: Sequence[Value], value: ValueAt) -> Value:
        """`value` at all places of the window of a result, combined; of all windows of a box, added up."""
        totals, box = self._op.totals, self._box
        if totals is None:
            return self._over_window(loops, [], value)
        element, before, behind = element_of(self._op.output.type), loops[:FIRST], loops[FIRST + len(box) :]
        wide = compute_type(element)
        total, zero = constant(0.0, wide), constant(0.0, wide)
        for number in range(prod(box)):
            within = self._places(at(number), box)
            position = [loops[FIRST + axis] * size + within[axis] for axis, size in enumerate(box)]
            found = zero
            if all(place < length for place, length in zip(position, totals.added(), strict=True)):
                found = cast(self._over_window([*before, *position, *behind], within, value), element, wide)
            total = total + found
        return cast(total, wide, element)

    @kernel
    def _over_window(self, loops: Sequence[Value], moved: Sequence[Value], value: ValueAt) -> Value:
        """The same of one window, whose extra operands lie `moved` windows further."""
        pooling, sizes = self._op.pooling, self._sizes
        if pooling is None:
            return value(loops, moved)
        element, is_max = element_of(self._op.output.type), pooling.kind.data is WindowKind.MAX
        wide, before, behind = compute_type(element), loops[:FIRST], loops[FIRST + len(sizes) :]
        pooled = constant(float("-inf") if is_max else 0.0, wide)
        for number in range(prod(sizes)):
            within = self._places(at(number), sizes)
            position = [loops[FIRST + axis] * size + within[axis] for axis, size in enumerate(sizes)]
            if moved:
                within = [moved[axis] * size + within[axis] for axis, size in enumerate(sizes)]
            found = cast(value([*before, *position, *behind], within), element, wide)
            pooled = max(pooled, found) if is_max else pooled + found
        if pooling.kind.data is WindowKind.AVERAGE:
            pooled = pooled * (1 / prod(sizes))
        return cast(pooled, wide, element)

    @kernel
    def _places(self, number: Value, sizes: Sequence[int]) -> list[Value]:
        """The place in a window along each axis, of the one with a number."""
        places = list[Value]()
        for size in reversed(sizes):
            places = [number % size, *places]
            number = number // size
        return places


__all__ = ["Pooled"]
