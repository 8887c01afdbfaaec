"""Composes index maps through a reshape: which element in front of it an index behind it stands for. No IR."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from mlirt.dialects.symbolic import Dim, coefficient_of, product, sym, symbols


def through_view(
    before: Sequence[Dim], after: Sequence[Dim], indices: Sequence[Dim], extents: Mapping[str, Dim] | None = None
) -> tuple[Dim, ...] | None:
    """The indices in a tensor of dimensions `before` of what `indices` read once it is viewed as `after`.

    None where they would not be linear: an axis of the view joins several axes that are longer than 1. It may do so
    where its index counts them apart, `4*d0 + d1` with an extent of 4 for `d1`.
    """
    found: list[Dim] = []
    for olds, news in axis_groups(before, after):
        total: Dim = 0
        for axis in news:
            total = total * after[axis] + indices[axis]
        parts = _apart(total, [before[axis] for axis in olds], extents or {})
        if parts is None:
            return None
        found += parts
    return tuple(found) if len(found) == len(before) else None


def joined_axes(before: Sequence[Dim], after: Sequence[Dim]) -> dict[int, tuple[Dim, Dim]]:
    """The axes of a view that join two axes longer than 1, with the lengths of these."""
    return {whole[0]: (long[0], long[1]) for long, whole in _views_of_two(before, after) if len(whole) == 1}


def partly_joined_axes(before: Sequence[Dim], after: Sequence[Dim]) -> dict[int, tuple[Dim, Dim]]:
    """The axes of a view that join one axis and a part of the next, with the lengths of both: 2 x 128 as 8 x 32."""
    found: dict[int, tuple[Dim, Dim]] = {}
    for long, whole in _views_of_two(before, after):
        outside: Dim = 1
        for axis in whole if len(whole) > 1 else ():
            if (parts := _parts_around(after[axis], outside, long[0])) is not None:
                found[axis] = parts
            outside *= after[axis]
    return found


def _views_of_two(before: Sequence[Dim], after: Sequence[Dim]) -> Iterator[tuple[list[Dim], list[int]]]:
    """Two lengths above 1 that are viewed as others, and the axes of these."""
    for olds, news in axis_groups(before, after):
        long = [before[axis] for axis in olds if before[axis] != 1]
        if len(long) == 2:
            yield long, [axis for axis in news if after[axis] != 1]


def _parts_around(size: Dim, outside: Dim, border: Dim) -> tuple[int, int] | None:
    """The two lengths above 1 into which a border between axes divides an axis, behind `outside` elements of others."""
    if not (isinstance(size, int) and isinstance(outside, int) and isinstance(border, int)):
        return None
    outer = border // outside
    divides = outer * outside == border and 1 < outer < size and size % outer == 0
    return (outer, size // outer) if divides else None


def order_before_view(before: Sequence[Dim], after: Sequence[Dim], order: Sequence[int]) -> list[int] | None:
    """The order of the axes in front of a view that leads to those behind it in the given order.

    None where the order parts axes behind the view that hold elements of the same axes in front of it.
    """
    groups, found, place = list(axis_groups(before, after)), list[int](), 0
    if sum(len(news) for _, news in groups) != len(after) or sum(len(olds) for olds, _ in groups) != len(before):
        return None
    while place < len(order):
        olds, news = next(group for group in groups if order[place] in group[1])
        if list(order[place : place + len(news)]) != news:
            return None
        found += olds
        place += len(news)
    # Groups without axes behind the view have lengths of 1 in front of it.
    return [*(axis for olds, news in groups if not news for axis in olds), *found]


def _apart(index: Dim, sizes: Sequence[Dim], extents: Mapping[str, Dim]) -> list[Dim] | None:
    """An index into row-major axes of these sizes as one index for each."""
    found: list[Dim] = []
    long = sum(size != 1 for size in sizes)
    for size in reversed(sizes):
        if size == 1:
            found.append(0)
        elif long == 1:
            found.append(index)
        else:
            inner = _inner(index, size, extents)
            if inner is None:
                return None
            found.append(inner)
            index = (index - inner) // size
            long -= 1
    return list(reversed(found))


def _inner(index: Dim, size: Dim, extents: Mapping[str, Dim]) -> Dim | None:
    """The part of an index that counts within `size`, where the rest is a multiple of it."""
    for name in symbols(index):
        rest = index - sym(name)
        if extents.get(name) == size and rest // size * size == rest:
            return sym(name)
    if index // size * size == index:
        return 0
    if not isinstance(size, int):
        return None
    inner: Dim = 0
    most = 0
    for name in symbols(index):
        factor, extent = _factor(index, name), extents.get(name)
        if not isinstance(factor, int):
            return None
        if factor % size == 0:
            continue
        if factor < 0 or not isinstance(extent, int):
            return None
        inner, most = inner + factor * sym(name), most + factor * (extent - 1)
    rest = index - inner
    return inner if most < size and rest // size * size == rest else None


def _factor(index: Dim, name: str) -> Dim | None:
    try:
        return coefficient_of(index, name)
    except ValueError:  # the index is not linear in it
        return None


def axis_groups(before: Sequence[Dim], after: Sequence[Dim]) -> Iterator[tuple[list[int], list[int]]]:
    """The smallest runs of axes of both sides that hold equally many elements; runs end early where that is unknown."""
    old, new = 0, 0
    while old < len(before) or new < len(after):
        olds, news = [old] if old < len(before) else [], [new] if new < len(after) else []
        old, new = old + len(olds), new + len(news)
        while (step := _shorter([before[axis] for axis in olds], [after[axis] for axis in news])) != 0:
            if step < 0 and old < len(before):
                olds.append(old)
                old += 1
            elif step > 0 and new < len(after):
                news.append(new)
                new += 1
            else:
                return
        yield olds, news


def _shorter(olds: Sequence[Dim], news: Sequence[Dim]) -> int:
    """0 where both hold equally many elements, below 0 where the old side must grow, above 0 for the new one."""
    left, right = product(olds), product(news)
    if left == right:
        return 0
    if isinstance(left, int) and isinstance(right, int):
        return left - right
    # One divides the other: that is the shorter one. Symbols that are on one side only belong to the longer one.
    return -1 if left != 0 and right // left * left == right else 1
