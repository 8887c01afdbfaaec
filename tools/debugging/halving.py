"""Looks for a place by halving."""

from __future__ import annotations

from collections.abc import Callable


def least(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The least number from which on `holds` is true, if it stays so; `high`, for which it is, where it does not."""
    right = high
    while low < right:
        middle = (low + right) // 2
        low, right = (low, middle) if holds(middle) else (middle + 1, right)
    return right
