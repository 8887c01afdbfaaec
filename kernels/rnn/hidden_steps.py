"""Hidden states as whole numbers of steps: the formulas of `dynamic_steps` for one sequence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects import math
from xdsl.dialects.builtin import IntegerAttr, f32, i64
from xdsl.ir import SSAValue

from mlirt.dialects.kernel.core import ReduceKind, ReduceOp
from mlirt.kernels.lib.builder.kernel_builder import Extent, KernelBuilder

Load = Callable[[SSAValue], SSAValue]


@dataclass(frozen=True)
class HiddenSteps:
    """The size of a step, and how many of them zero lies above the least number."""

    k: KernelBuilder
    size: SSAValue
    zero: SSAValue

    @staticmethod
    def of(k: KernelBuilder, units: Extent, load: Load, lanes: int | None = None) -> HiddenSteps:
        """The steps for what `load` gives for each hidden unit; with a number of `lanes`, for so many at once."""
        return HiddenSteps.between(
            k, *(_extreme(k, kind, units, load, lanes) for kind in (ReduceKind.MIN, ReduceKind.MAX))
        )

    @staticmethod
    def between(k: KernelBuilder, low: SSAValue, high: SSAValue) -> HiddenSteps:
        """The steps from the least to the largest number, of which one is zero or they lie on either side of it."""
        s, nothing = k.scalars(f32), k.constant(0, f32)
        size = s.select(s.compare("eq", low, high), s.constant(1), s.div(s.sub(high, low), s.constant(255)))
        lowest = s.min(s.max(s.div(s.neg(low), size), nothing), s.constant(255))
        return HiddenSteps(k, size, s.function(math.RoundEvenOp, lowest))

    def place_of(self, number: SSAValue) -> SSAValue:
        """The place of a number among the steps from the least one on, as a whole float32 number from 0 to 255."""
        s = self.k.scalars(f32)
        place = s.add(s.function(math.RoundEvenOp, s.div(number, self.size)), self.zero)
        return s.min(s.max(place, s.constant(0)), s.constant(255))

    def of_number(self, number: SSAValue) -> SSAValue:
        """A number in steps, as a whole float32 number."""
        return self.k.scalars(f32).sub(self.place_of(number), self.zero)


def _extreme(k: KernelBuilder, kind: ReduceKind, units: Extent, load: Load, lanes: int | None) -> SSAValue:
    found = k.reduce(kind, [units], k.constant(0, f32), lambda at: load(at[0]))
    if lanes is not None:
        reduce = found.owner
        assert isinstance(reduce, ReduceOp)
        reduce.attributes["lanes"] = IntegerAttr(lanes, i64)
    return found
