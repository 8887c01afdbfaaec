"""The strides of a tensor under other dimensions, where the same memory can be read that way."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.dialects.symbolic import Dim, product


def reshaped_strides(before: Sequence[Dim], steps: Sequence[Dim], after: Sequence[Dim]) -> tuple[Dim, ...] | None:
    """Strides under the dimensions `after` of the row-major sequence of elements that `before` and `steps` give.

    None where there are none: a new dimension would run over old ones that do not follow each other in memory.
    """
    runs = _runs(before, steps)
    if len(runs) <= 1:  # whatever the dimensions, every element is one step behind the one before
        step = runs[0][1] if runs else 1
        return tuple(step * product(after[axis + 1 :]) for axis in range(len(after)))
    result: list[Dim] = []
    for size in reversed(after):
        if size == 1:
            result.append(result[-1] if result else 1)
            continue
        if not runs:
            return None
        length, step = runs[-1]
        rest = _quotient(length, size)
        if rest is None:
            return None
        result.append(step)
        runs[-1:] = [] if rest == 1 else [(rest, step * size)]
    return tuple(reversed(result)) if not runs else None


def _runs(before: Sequence[Dim], steps: Sequence[Dim]) -> list[tuple[Dim, Dim]]:
    """(length, step) of the longest stretches of dimensions that lie in memory like one, the innermost last."""
    runs: list[tuple[Dim, Dim]] = []
    for size, step in reversed(list(zip(before, steps, strict=True))):
        if size == 1:
            continue
        if runs and step == runs[0][0] * runs[0][1]:
            runs[0] = (size * runs[0][0], runs[0][1])
        else:
            runs.insert(0, (size, step))
    return runs


def _quotient(length: Dim, size: Dim) -> Dim | None:
    """`length / size` where that is known to leave no rest."""
    if length == size:
        return 1
    if isinstance(length, int) and isinstance(size, int):
        return length // size if size and length % size == 0 else None
    rest = length // size
    return rest if rest * size == length else None
