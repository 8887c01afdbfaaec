"""Of large outputs the first bytes, the last ones and parts of each stretch between them are compared."""

from __future__ import annotations

import numpy as np
import pytest

from mlirt.builder.tactics.sampled_parts import sampled_parts

_LIMIT = 1 << 22


@pytest.mark.parametrize("size", [0, 2, 4096, _LIMIT])
def test_short_outputs_are_compared_as_a_whole(size: int) -> None:
    assert sampled_parts(size) == [(0, size)]


@pytest.mark.parametrize("size", [_LIMIT + 2, _LIMIT + 8192, 5 * _LIMIT + 6, 100 * _LIMIT])
def test_parts_of_a_long_output(size: int) -> None:
    parts = sampled_parts(size)
    assert sum(length for _, length in parts) <= _LIMIT
    assert parts[0][0] == 0
    assert sum(parts[-1]) == size
    assert all(start % 2 == 0 and length % 2 == 0 and 0 <= start <= size - length for start, length in parts)
    starts = np.array([start for start, _ in parts])
    steps = np.diff(starts)
    assert steps.min() > 0
    assert steps.max() < 2 * size / len(parts) + 2 * parts[0][1], "no stretch is left out"
    if size > 2 * _LIMIT:
        assert len(set(steps.tolist())) > len(parts) // 2, "no period is followed"
