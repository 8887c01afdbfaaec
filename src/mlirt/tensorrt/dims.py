"""Dimensions as TensorRT's Python API has them: short lists of numbers that print like tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import SupportsIndex, cast, overload

MAX_DIMS = 8


class Dims(Sequence[int]):
    """The lengths of a tensor; -1 stands for one that the run decides. Equal to any sequence of the same numbers."""

    MAX_DIMS = MAX_DIMS

    def __init__(self, shape: Iterable[int] = ()) -> None:
        self._lengths = [int(length) for length in shape]
        if len(self._lengths) > MAX_DIMS:
            raise ValueError(f"{len(self._lengths)} dimensions; a tensor has at most {MAX_DIMS}")

    def __len__(self) -> int:
        return len(self._lengths)

    @overload
    def __getitem__(self, index: SupportsIndex) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Dims: ...
    def __getitem__(self, index: SupportsIndex | slice) -> int | Dims:
        return Dims(self._lengths[index]) if isinstance(index, slice) else self._lengths[index]

    def __setitem__(self, index: int, length: int) -> None:
        self._lengths[index] = int(length)

    def __iter__(self) -> Iterator[int]:
        return iter(self._lengths)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Dims | tuple | list) and list(self) == [*cast("Sequence[object]", other)]

    def __str__(self) -> str:
        return str(tuple(self))

    __repr__ = __str__


class InvalidDims(Dims):
    """The dimensions of a tensor whose layer is not complete, or contradicts its inputs."""

    def __str__(self) -> str:
        return "(0)"

    __repr__ = __str__


class Dims2(Dims):
    """Two dimensions."""

    def __init__(self, *shape: int | Iterable[int]) -> None:
        super().__init__(_exactly(2, shape))


class Dims3(Dims):
    """Three dimensions."""

    def __init__(self, *shape: int | Iterable[int]) -> None:
        super().__init__(_exactly(3, shape))


class Dims4(Dims):
    """Four dimensions."""

    def __init__(self, *shape: int | Iterable[int]) -> None:
        super().__init__(_exactly(4, shape))


class DimsHW(Dims2):
    """Height and width."""

    @property
    def h(self) -> int:
        return self[0]

    @h.setter
    def h(self, height: int) -> None:
        self[0] = height

    @property
    def w(self) -> int:
        return self[1]

    @w.setter
    def w(self, width: int) -> None:
        self[1] = width


class Permutation(Dims):
    """The order of axes after a transposition: axis k of the result is axis `permutation[k]` of the input."""


def volume(shape: Iterable[int]) -> int:
    """The number of elements of a shape."""
    return prod(shape)


def _exactly(count: int, given: tuple[int | Iterable[int], ...]) -> list[int]:
    lengths: list[int] = []
    for one in given or (0,) * count:
        lengths.extend([one] if isinstance(one, int) else one)
    if len(lengths) != count:
        raise ValueError(f"expected {count} dimensions, got {lengths}")
    return lengths
