"""Which parts of a large output are compared: to bring all of it to the host would take longer than to measure."""

from __future__ import annotations

import numpy as np

_MAX_ELEMENTS = 1 << 22
"""Bytes of an output that are compared; shorter ones are compared as a whole."""
_PART = 1 << 16
_ALIGNMENT = 16
"""Parts start at multiples of this, so that no element is cut."""


def sampled_parts(size: int) -> list[tuple[int, int]]:
    """Start and size of the parts of an output of `size` bytes: its first bytes, its last ones, and one in each of many
    stretches between them, at places that look random, so that no period of the output hides anything.
    """
    if size <= _MAX_ELEMENTS:
        return [(0, size)]
    count = _MAX_ELEMENTS // _PART - 2
    stretch = (size - 2 * _PART) // count
    jumps = np.random.default_rng(0).integers(0, max(1, stretch - _PART), count)
    places = (_PART + number * stretch + int(jump) for number, jump in enumerate(jumps))
    inner = [(place - place % _ALIGNMENT, _PART) for place in places]
    return [(0, _PART), *inner, (size - _PART, _PART)]
