"""Layouts: where the elements of a tensor, a tile, a fragment or packed weights lie, in the terms of CuTe.

A layout is a function from coordinates to offsets, written `shape : stride`. A dimension has one mode, or several that
are nested in it, the outermost first; an offset is the sum of the indices along all modes, each times its stride.
Sizes and strides may be symbolic. A swizzle permutes the offsets that a layout gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.dialects.symbolic import Dim, modulo, product

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Mode: TypeAlias = "Dim | tuple[Dim, ...]"
"""One number of a dimension, or those of the modes that are nested in it."""
_GROUPS = re.compile(r"\(([^)]*)\)|([\w.]+)")


@dataclass(frozen=True)
class Layout:
    """`shape : stride`, dimensions and modes outermost first; where a dimension is nested, both are.

    `Layout((4, (2, 8)), (1, (32, 4)))` has the element `(i, j)` at `i + j // 8 * 32 + j % 8 * 4`. Two layouts are the
    same function of an index if their `coalesced` ones are equal.
    """

    shape: tuple[Mode, ...]
    stride: tuple[Mode, ...]

    @staticmethod
    def row_major(shape: Sequence[Dim]) -> Layout:
        """Without gaps, the last dimension innermost."""
        return Layout.ordered(shape, range(len(shape)))

    @staticmethod
    def ordered(shape: Sequence[Dim], order: Sequence[int]) -> Layout:
        """Without gaps; `order` lists the dimensions from the outermost to the innermost in memory."""
        stride: dict[int, Dim] = {}
        step: Dim = 1
        for axis in reversed(order):
            stride[axis], step = step, step * shape[axis]
        return Layout(tuple(shape), tuple(stride[axis] for axis in range(len(shape))))

    def modes(self) -> list[tuple[Dim, Dim]]:
        """Size and stride of each mode of all dimensions."""
        return [pair for shape, stride in zip(self.shape, self.stride, strict=True) for pair in _paired(shape, stride)]

    def size(self) -> Dim:
        """How many coordinates there are."""
        return product([size for size, _ in self.modes()])

    def __call__(self, *coordinates: Any) -> Any:
        """The offset of a coordinate for each dimension: integers, or arrays of them that are broadcast."""
        offset: Any = 0
        for rest, shape, stride in zip(coordinates, self.shape, self.stride, strict=True):
            modes = list(_paired(shape, stride))
            for size, step in reversed(modes[1:]):
                rest, at = divmod(rest, size)
                offset = offset + at * step
            offset = offset + rest * modes[0][1]
        return offset

    def coalesced(self) -> Layout:
        """The same function of an index, with as few modes as there can be; an index counts the last mode fastest."""
        found: list[tuple[Dim, Dim]] = []
        for size, stride in reversed(self.modes()):
            if size == 1:
                continue
            if found and stride == found[0][0] * found[0][1]:
                found[0] = (size * found[0][0], found[0][1])
            else:
                found.insert(0, (size, stride))
        return Layout(tuple(size for size, _ in found), tuple(stride for _, stride in found))

    def reshaped(self, shape: Sequence[Dim]) -> Layout | None:
        """The composition with a row-major layout of another shape: the same elements under other dimensions.

        None where there is none without nested modes: a dimension would run over modes that do not follow each other.
        """
        modes = self.coalesced().modes()
        if len(modes) <= 1:  # whatever the dimensions, every element is one step behind the one before
            step = modes[0][1] if modes else 1
            return Layout(tuple(shape), tuple(step * one for one in Layout.row_major(shape).strides()))
        found: list[Dim] = []
        for size in reversed(shape):
            if size == 1:
                found.append(found[-1] if found else 1)
                continue
            rest = _quotient(modes[-1][0], size) if modes else None
            if rest is None:
                return None
            step = modes.pop()[1]
            found.append(step)
            if rest != 1:
                modes.append((rest, step * size))
        return None if modes else Layout(tuple(shape), tuple(reversed(found)))

    def strides(self) -> tuple[Dim, ...]:
        """The stride of each mode."""
        return tuple(stride for _, stride in self.modes())


@dataclass(frozen=True)
class Swizzle:
    """CuTe's `Swizzle<bits, base, shift>`: an offset's bits from `base + shift` on are xored into those from `base` on.

    Shared memory is swizzled in pieces of 16 bytes: the same piece of neighbouring lines is in different banks.
    """

    bits: int
    base: int
    shift: int

    @staticmethod
    def of_lines(line: int) -> Swizzle:
        """That of lines of 32, 64 or 128 bytes, as tensor copies and matrix units have it; of 0 bytes that of none."""
        return Swizzle(max(0, line.bit_length() - 5), 4, 3)

    @property
    def period(self) -> int:
        """What an offset is aligned to where the order of the pieces begins anew."""
        return 1 << self.base + self.shift + self.bits if self.bits else 1

    def __call__(self, offset: Any) -> Any:
        """Where the byte at an offset lies: an integer, or an array of them."""
        return offset ^ (offset >> self.shift & (1 << self.bits) - 1 << self.base)


def arranged(array: Array, dimensions: str, memory: str, **sizes: int) -> Array:
    """An array `[dimensions]` as `[memory]`, where both name modes, outermost first, and nest them by parentheses.

    `arranged(kernel, "(b l) c", "b c l", l=16)` has blocks of 16 rows innermost. A dimension may have one mode without
    a size: it is as large as the array asks for, and zeros stand where a dimension of the array ends before its modes.
    `...` stands for any dimensions. The result may be a view.
    """
    import numpy as np

    outer = array.ndim - len(list(_groups(dimensions, 0)))
    before, after = list(_groups(dimensions, outer)), list(_groups(memory, outer))
    known: dict[str, int] = dict(sizes)
    for length, names in zip(array.shape, before, strict=True):
        given = prod(known[name] for name in names if name in known)
        known.update((name, -(-length // given)) for name in names if name not in known)

    def shape(groups: list[list[str]]) -> list[int]:
        return [prod(known[name] for name in names) for names in groups]

    whole = array
    if shape(before) != list(array.shape):
        whole = np.zeros(shape(before), array.dtype)
        whole[tuple(map(slice, array.shape))] = array
    modes, order = (sum(groups, list[str]()) for groups in (before, after))
    split = whole.reshape([known[name] for name in modes]).transpose([modes.index(name) for name in order])
    return split.reshape(shape(after))


def vector_width(most: int, *numbers: Dim) -> int:
    """The largest power of two up to `most`, itself one, that divides all of these for sure."""
    width = most
    while width > 1 and any(modulo(number, width) != 0 for number in numbers):
        width //= 2
    return max(width, 1)


def contiguous_width(offsets: Sequence[int], most: int) -> int:
    """The largest power of two up to `most` into whose multiples the offsets fall as stretches of neighbours."""
    width = most
    while width > 1:
        parts = [offsets[start : start + width] for start in range(0, len(offsets), width)]
        if all(list(part) == list(range(part[0], part[0] + width)) for part in parts):
            break
        width //= 2
    return max(width, 1)


def _paired(shape: Mode, stride: Mode) -> Iterator[tuple[Dim, Dim]]:
    if isinstance(shape, tuple):
        assert isinstance(stride, tuple)
        yield from zip(shape, stride, strict=True)
    else:
        assert not isinstance(stride, tuple)
        yield shape, stride


def _groups(text: str, outer: int) -> Iterator[list[str]]:
    """The names of the modes of each dimension; `...` has `outer` of them."""
    for nested, single in _GROUPS.findall(text):
        if single == "...":
            yield from ([f"_{number}"] for number in range(outer))
        else:
            yield nested.split() if nested else [single]


def _quotient(length: Dim, size: Dim) -> Dim | None:
    """`length / size` where that is known to leave no rest."""
    if length == size:
        return 1
    if isinstance(length, int) and isinstance(size, int):
        return length // size if size and length % size == 0 else None
    rest = length // size
    return rest if rest * size == length else None
