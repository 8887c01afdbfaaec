"""What a `for` of a kernel function may go over at run time: a range, in order, or regions of the kernel dialect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from mlirt.kernels.lib.language.values import Index

GivenT = TypeVar("GivenT")


class Range:
    """The `range` of kernel functions: a loop over it is `scf.for`, also where its bounds are known."""

    def __init__(self, *bounds: Index) -> None:
        if not 1 <= len(bounds) <= 3:
            raise TypeError("expected range(stop), range(start, stop) or range(start, stop, step)")
        self.start, self.stop, self.step = (*((0,) if len(bounds) == 1 else ()), *bounds, 1)[:3]

    def __iter__(self) -> Iterator[int]:
        """The numbers of a comprehension, which is unrolled."""
        bounds = self.start, self.stop, self.step
        if not all(isinstance(bound, int) for bound in bounds):
            raise TypeError("expected bounds that are known when the kernel is read: this is unrolled")
        return iter(static_range(*bounds))  # pyright: ignore[reportArgumentType]

    def extents(self) -> list[Any]:
        """As a box, for what has no order."""
        if self.start != 0 or self.step != 1:
            raise TypeError("expected range(stop) here: what has no order starts at 0 and leaves nothing out")
        return [self.stop]

    def given(self, indices: Sequence[Any]) -> Any:
        """What an iteration is called."""
        return indices[0]


class Box:
    """Indices of which each goes up to its extent, in no order. A list of extents gives a list of indices."""

    def __init__(self, *extents: Any) -> None:
        self._is_list = len(extents) == 1 and isinstance(extents[0], list | tuple)
        self._extents = list(cast("Sequence[Any]", extents[0]) if self._is_list else extents)

    def __iter__(self) -> Iterator[Any]:
        """Reductions go over it at run time."""
        raise TypeError("expected sum(..), max(..) or min(..) of a kernel function around what goes over a box")

    def extents(self) -> list[Any]:
        """The number of iterations along each index."""
        return self._extents

    def given(self, indices: Sequence[Any]) -> Any:
        """What an iteration is called: its index, or its indices where there are several or may be."""
        return indices[0] if len(self._extents) == 1 and not self._is_list else tuple(indices)


@dataclass(frozen=True)
class RegionLoop(Generic[GivenT]):
    """Iterations that an op of the kernel dialect makes: `enter` opens its region and gives what an iteration gets."""

    enter: Callable[[], AbstractContextManager[GivenT]]

    def __iter__(self) -> Iterator[GivenT]:
        """In kernel functions `for` goes over it at run time."""
        raise TypeError("expected a `for` statement of a kernel function around a loop at run time")


def static_range(*bounds: int) -> tuple[int, ...]:
    """A range whose loop is unrolled."""
    return tuple(range(*bounds))
