"""The loop over the places of a pooling window around what a direct convolution computes for one place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.ir import SSAValue

from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.fused.pooling import FIRST
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.fused.window import WindowKind
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride
from mlirt.kernels.lib.loops.loop_nest import Affine

# (place in what is summed up, place in the window) -> a value.
Value = Callable[[list[SSAValue], list[SSAValue]], SSAValue]


class Pooled:
    """The windows of an op; one without pooling has windows of one place each, without a loop.

    `operands` are the extra operands over the dimensions of the result, as they lie at the first place of a window.
    """

    def __init__(self, k: KernelBuilder, op: ConvolutionOp, extras: Sequence[Affine]) -> None:
        self._k, self._op, self._extras = k, op, extras
        self._sizes = () if op.pooling is None else op.pooling.sizes()
        self.operands = [Affine(one.value, self._between_windows(one), one.offset) for one in extras]

    def _between_windows(self, one: Affine) -> tuple[Dim, ...]:
        steps = list(one.steps)
        for axis, size in enumerate(self._sizes):
            steps[FIRST + axis] = steps[FIRST + axis] * size
        return tuple(steps)

    def within(self, number: int, places: Sequence[SSAValue]) -> list[tuple[SSAValue, Stride]]:
        """How an extra operand moves on to a place of a window."""
        steps = self._extras[number].steps[FIRST:]
        return [(place, self._k.stride(step)) for place, step in zip(places, steps, strict=False) if step != 0]

    def over_windows(self, loops: Sequence[SSAValue], value: Value) -> SSAValue:
        """`value` at all places of the window of a result, combined."""
        k, pooling = self._k, self._op.pooling
        if pooling is None:
            return value(list(loops), [])
        element, is_max = element_of(self._op.output.type), pooling.kind.data is WindowKind.MAX
        wide = compute_type(element)

        def step(number: SSAValue, state: list[SSAValue]) -> list[SSAValue]:
            within = self._places(number)
            position = list(loops)
            for axis, (size, place) in enumerate(zip(self._sizes, within, strict=True)):
                position[FIRST + axis] = k.add(k.mul(loops[FIRST + axis], size), place)
            found = value(position, within)
            s = k.scalars(wide)
            combined = s.max if is_max else s.add
            return [combined(state[0], s.cast(found, element))]

        start = k.constant(float("-inf") if is_max else 0.0, wide)
        (pooled,) = k.loop(prod(self._sizes), [start], step)
        if pooling.kind.data is WindowKind.AVERAGE:
            s = k.scalars(wide)
            pooled = s.mul(pooled, s.constant(1 / prod(self._sizes)))
        return k.scalars(element).cast(pooled, wide)

    def _places(self, number: SSAValue) -> list[SSAValue]:
        """The place in a window along each axis, of the one with a number."""
        places: list[SSAValue] = []
        for size in reversed(self._sizes):
            places.insert(0, self._k.rem(number, size))
            number = self._k.div(number, size)
        return places


__all__ = ["Pooled"]
