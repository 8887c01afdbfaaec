"""Exponents of costs that grow: the k for which a cost is about a constant times n to the power of k."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The slope of the costs over the sizes, both as logarithms, by least squares; NaN for fewer than two."""
    pairs = [(size, cost) for size, cost in zip(sizes, costs, strict=True) if size > 0 and cost > 0]
    if len({size for size, _ in pairs}) < 2:
        return float("nan")
    logarithms = np.log(np.array(pairs))
    return float(np.polyfit(logarithms[:, 0], logarithms[:, 1], 1)[0])


def numbers(text: str) -> list[int]:
    """`1,4,64`: whole numbers from 1 on."""
    found = [int(part) for part in text.split(",")]
    if min(found) < 1:
        raise ValueError(f"expected numbers from 1 on, got {text}")
    return found
