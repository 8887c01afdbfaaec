"""IOptimizationProfile: the shapes that the inputs of a network will have (tensorrt-features.md#12.2 to 12.6)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mlirt.builder.profiles import Profile
from mlirt.errors import InvalidInputError
from mlirt.tensorrt.context_manager import ContextManager
from mlirt.tensorrt.dims import Dims
from mlirt.tensorrt.fixed_attributes import FixedAttributes


class IOptimizationProfile(FixedAttributes, ContextManager):
    """The smallest, the usual and the largest shape of each input that has dynamic dimensions."""

    def __init__(self) -> None:
        self.shapes: dict[str, Profile] = {}
        self.values: dict[str, tuple[list[int], list[int], list[int]]] = {}
        self._extra_memory_target = 1.0
        self.fix_attributes()

    def set_shape(self, input: str, min: Iterable[int], opt: Iterable[int], max: Iterable[int]) -> None:
        """Set the shapes of an input; raises `ValueError` unless min <= opt <= max in each dimension."""
        low, usual, high = tuple(min), tuple(opt), tuple(max)
        _check(input, low, usual, high)
        self.shapes[input] = Profile(low, usual, high)

    def get_shape(self, input: str) -> list[Dims]:
        """The three shapes of an input; empty where there are none."""
        found = self.shapes.get(input)
        return [] if found is None else [Dims(found.smallest), Dims(found.usual), Dims(found.largest)]

    def set_shape_input(self, input: str, min: Iterable[int], opt: Iterable[int], max: Iterable[int]) -> None:
        """The values of an input that is read as a shape; raises as `set_shape` does."""
        low, usual, high = list(min), list(opt), list(max)
        _check(input, low, usual, high)
        self.values[input] = (low, usual, high)

    def get_shape_input(self, input: str) -> list[list[int]]:
        """The three values of an input that is read as a shape; empty where there are none."""
        return [list(one) for one in self.values.get(input, ())]

    @property
    def extra_memory_target(self) -> float:
        """How much memory beyond that of other profiles this one may take, from 0 to 1; kept, and changes nothing."""
        return self._extra_memory_target

    @extra_memory_target.setter
    def extra_memory_target(self, target: float) -> None:
        if not 0 <= target <= 1:
            raise InvalidInputError(f"extra_memory_target: expected a number from 0 to 1, got {target}")
        self._extra_memory_target = float(target)

    @property
    def is_empty(self) -> bool:
        """Whether nothing was set (mlirt's own)."""
        return not (self.shapes or self.values)

    def __bool__(self) -> bool:
        """Whether the profile is valid, as one is whose ranges were checked when they were set."""
        return True


def _check(name: str, low: Sequence[int], usual: Sequence[int], high: Sequence[int]) -> None:
    alike = len(low) == len(usual) == len(high)
    if not alike or not all(a <= b <= c for a, b, c in zip(low, usual, high, strict=True)):
        raise InvalidInputError(
            f"profile of input {name!r}: expected min <= opt <= max in each dimension, got {low}, {usual}, {high}"
        )
