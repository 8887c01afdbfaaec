"""Reading through a reshape: which element of the tensor before it an index after it stands for. No IR."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mlirt.dialects.symbolic import Dim, product


def through_view(before: Sequence[Dim], after: Sequence[Dim], indices: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """The indices in a tensor of dimensions `before` of what `indices` read once it is viewed as `after`.

    None where they would not be linear: an axis of the view joins several axes that are longer than 1.
    """
    found: list[Dim] = []
    for olds, news in _groups(before, after):
        long = [axis for axis in olds if before[axis] != 1]
        if len(long) > 1:
            return None
        total: Dim = 0
        for axis in news:
            total = total * after[axis] + indices[axis]
        found += [total if axis in long else 0 for axis in olds]
    return tuple(found) if len(found) == len(before) else None


def _groups(before: Sequence[Dim], after: Sequence[Dim]) -> Iterator[tuple[list[int], list[int]]]:
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
