"""Transpose, reshape, transpose: how shuffles compose. Pure arithmetic on dimensions, without IR."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from mlirt.dialects.symbolic import Dim, product

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

    @property
    def keeps_rows(self) -> bool:
        """Whether neighbours along the result's last axis are neighbours in the source."""
        only = self.transposition
        last = self.second if only is None else only
        return not last or last[-1] == len(last) - 1

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
        between = permuted(self.second, other.first)
        if keeps_order(between, self.middle):
            return Rearrangement(self.source, self.first, other.middle, other.second).normalized()
        before = moved_before(permuted(self.source, self.first), self.middle, between)
        if before is not None:
            return Rearrangement(self.source, permuted(self.first, before), other.middle, other.second).normalized()
        after = moved_after(permuted(self.middle, between), other.middle, between)
        if after is not None:
            order, middle = after
            return Rearrangement(self.source, self.first, middle, permuted(order, other.second)).normalized()
        return None


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


def factors(before: Dims, after: Dims) -> list[tuple[Permutation, Permutation]] | None:
    """The axes of a reshape in as many independent parts as possible: (axes before, axes after) of each part in order.

    None where a length is 0 or the numbers of elements are not provably equal.
    """
    if 0 in before or 0 in after:
        return None
    parts: list[tuple[Permutation, Permutation]] = []
    start, there = 0, 0
    reached = {product(list(after[:end])): end for end in range(len(after), 0, -1)}
    for end in range(1, len(before) + 1):
        stop = reached.get(product(list(before[:end])))
        if stop is not None and stop > there:
            parts.append((tuple(range(start, end)), tuple(range(there, stop))))
            start, there = end, stop
    if (start, there) == (len(before), len(after)) or not parts:
        return parts or None
    # Axes of length 1 at the end belong to the last part.
    if any(length != 1 for length in (*before[start:], *after[there:])):
        return None
    last = parts[-1]
    parts[-1] = ((*last[0], *range(start, len(before))), (*last[1], *range(there, len(after))))
    return parts


def moved_before(before: Dims, after: Dims, permutation: Permutation) -> Permutation | None:
    """The transposition in front of a reshape that does what one behind it does; None where there is none."""
    parts = factors(before, after)
    order = None if parts is None else _order_of_blocks([there for _, there in parts], permutation)
    if parts is None or order is None:
        return None
    return tuple(axis for number in order for axis in parts[number][0])


def moved_after(before: Dims, after: Dims, permutation: Permutation) -> tuple[Permutation, Dims] | None:
    """For a transposition to `before` and a reshape to `after`: the transposition behind, and the new reshape's target.

    None where the reshape joins axes that the transposition brought together.
    """
    parts = factors(before, after)
    if parts is None:
        return None
    # Without the transposition the parts come in the order in which their axes lay before it.
    origins = [[permutation[axis] for axis in here] for here, _ in parts]
    if any(axes != list(range(axes[0], axes[0] + len(axes))) for axes in origins):
        return None
    natural = sorted(range(len(parts)), key=lambda number: origins[number][0])
    middle = tuple(after[axis] for number in natural for axis in parts[number][1])
    place = {axis: k for k, axis in enumerate(axis for number in natural for axis in parts[number][1])}
    return tuple(place[axis] for axis in range(len(after))), middle


def _order_of_blocks(blocks: Sequence[Permutation], permutation: Permutation) -> list[int] | None:
    """The blocks in the order in which a permutation takes them; None where it breaks one up."""
    by_first = {block[0]: number for number, block in enumerate(blocks)}
    order: list[int] = []
    position = 0
    while position < len(permutation):
        number = by_first.get(permutation[position])
        if number is None or permutation[position : position + len(blocks[number])] != blocks[number]:
            return None
        order.append(number)
        position += len(blocks[number])
    return order


def is_identity(permutation: Permutation) -> bool:
    return permutation == identity(len(permutation))


def inverse(permutation: Sequence[int]) -> Permutation:
    """The permutation that undoes another."""
    return tuple(permutation.index(axis) for axis in range(len(permutation)))


def keeps_order(permutation: Permutation, shape: Dims) -> bool:
    """Whether a transposition moves axes of length 1 only, so that the elements stay where they are."""
    moved = [axis for axis in permutation if shape[axis] != 1]
    return moved == sorted(moved)
