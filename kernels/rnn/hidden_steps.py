"""Hidden states as whole numbers of steps: the formulas of `dynamic_steps` for one sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import f32

from mlirt.dialects.kernel.core import ReduceKind
from mlirt.kernels.lib.builder.kernel_builder import Extent
from mlirt.kernels.lib.language import Value, kernel, value_of
from mlirt.kernels.lib.language.tile_words import lane_reduction
from mlirt.kernels.lib.language.words import Box, constant, extent, reduction, round_even


@dataclass(frozen=True)
class HiddenSteps:
    """The size of a step, and how many of them zero lies above the least number."""

    size: Value
    zero: Value

    @kernel
    def place_of(self, number: Value) -> Value:
        """The place of a number among the steps from the least one on, as a whole float32 number from 0 to 255."""
        return value_of(min(max(round_even(number / self.size) + self.zero, 0.0), 255.0))

    @kernel
    def of_number(self, number: Value) -> Value:
        """A number in steps, as a whole float32 number."""
        return self.place_of(number) - self.zero


@kernel
def steps_of(units: Extent, load: Callable[[Value], Value], lanes: int | None = None) -> HiddenSteps:
    """The steps for what `load` gives for each hidden unit; with a number of `lanes`, for so many at once."""
    if lanes is None:
        low, high = [reduction(kind, Box(units), constant(0.0, f32), load) for kind in (ReduceKind.MIN, ReduceKind.MAX)]
    else:
        low, high = [lane_reduction(kind, extent(units), lanes, 0.0, load) for kind in (ReduceKind.MIN, ReduceKind.MAX)]
    return steps_between(low, high)


@kernel
def steps_between(low: Value, high: Value) -> HiddenSteps:
    """The steps from the least to the largest number, of which one is zero or they lie on either side of it."""
    size = value_of(1.0 if low == high else (high - low) / 255.0)
    return HiddenSteps(size, round_even(min(max(-low / size, 0.0), 255.0)))
