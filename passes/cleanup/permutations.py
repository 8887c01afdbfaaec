"""Transpose, reshape, transpose: how shuffles compose. Pure arithmetic on dimensions, without IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mlirt.dialects.symbolic import Dim

Dims = tuple[Dim, ...]
Permutation = tuple[int, ...]
T = TypeVar("T")


@dataclass(frozen=True)
class Rearrangement:
    """Elements of a tensor with dimensions `source`, transposed by `first`, seen as `middle`, transposed by `second`.

    Axis k after a transposition is axis permutation[k] before it.
    """

    source: Dims
    first: Permutation
    middle: Dims
    second: Permutation

    @property
    def target(self) -> Dims:
        """The dimensions of the result."""
        return permuted(self.middle, self.second)

    @property
    def is_identity(self) -> bool:
        return is_identity(self.first) and is_identity(self.second) and self.source == self.middle

    @property
    def transposition(self) -> Permutation | None:
        """The permutation where this is nothing else."""
        if self.middle != permuted(self.source, self.first):
            return None
        return permuted(self.first, self.second)

    def normalized(self) -> Rearrangement:
        """The same rearrangement with as few steps as possible, axes of length 1 moved by the reshape."""
        only = self.transposition
        if only is not None:
            if keeps_order(only, self.source):
                return reshape(self.source, permuted(self.source, only))
            target = permuted(self.source, only)
            return Rearrangement(self.source, only, target, identity(len(target)))
        first, middle, second = self.first, self.middle, self.second
        if keeps_order(first, self.source):
            first = identity(len(first))
        if keeps_order(second, middle):
            middle, second = permuted(middle, second), identity(len(second))
        return Rearrangement(self.source, first, middle, second)

    def then(self, other: Rearrangement) -> Rearrangement | None:
        """Both, one after the other, as one; None where that takes more than one reshape between two transposes."""
        own, following = self.transposition, other.transposition
        if own is not None:
            first = permuted(own, other.first)
            return Rearrangement(self.source, first, other.middle, other.second).normalized()
        if following is not None:
            return Rearrangement(self.source, self.first, self.middle, permuted(self.second, following)).normalized()
        if not keeps_order(permuted(self.second, other.first), self.middle):
            return None
        return Rearrangement(self.source, self.first, other.middle, other.second).normalized()


def transpose(source: Sequence[Dim], permutation: Sequence[int]) -> Rearrangement:
    """A transposition alone."""
    target = permuted(tuple(source), tuple(permutation))
    return Rearrangement(tuple(source), tuple(permutation), target, identity(len(target)))


def reshape(source: Sequence[Dim], target: Sequence[Dim]) -> Rearrangement:
    """A reshape alone."""
    return Rearrangement(tuple(source), identity(len(source)), tuple(target), identity(len(target)))


def permuted(values: tuple[T, ...], permutation: Permutation) -> tuple[T, ...]:
    """Values in the order of a permutation."""
    return tuple(values[axis] for axis in permutation)


def identity(rank: int) -> Permutation:
    return tuple(range(rank))


def is_identity(permutation: Permutation) -> bool:
    return permutation == identity(len(permutation))


def inverse(permutation: Sequence[int]) -> Permutation:
    """The permutation that undoes another."""
    return tuple(permutation.index(axis) for axis in range(len(permutation)))


def keeps_order(permutation: Permutation, shape: Dims) -> bool:
    """Whether a transposition moves axes of length 1 only, so that the elements stay where they are."""
    moved = [axis for axis in permutation if shape[axis] != 1]
    return moved == sorted(moved)
