"""What the words of tensor memory tell the device: descriptors bit by bit, and how many columns each load has."""

from __future__ import annotations

import pytest

from mlirt.builder.numba_cuda_intrinsics.tensor_memory import instruction_descriptor, pieces_of

FIELDS = {
    "accumulators": (4, 2),
    "left": (7, 3),
    "right": (10, 3),
    "left by depth": (15, 1),
    "right by depth": (16, 1),
    "columns / 8": (17, 6),
    "rows / 16": (24, 5),
}
"""Where a field of an instruction's descriptor begins, and its bits."""


@pytest.mark.parametrize("formats", [(1, 0, 0), (1, 1, 1), (1, 2, 2), (2, 1, 1), (2, 0, 1)])
@pytest.mark.parametrize("columns", [32, 96, 256])
@pytest.mark.parametrize("flips", [(False, False), (True, False), (False, True)])
def test_descriptors_of_instructions(formats: tuple[int, int, int], columns: int, flips: tuple[bool, bool]) -> None:
    descriptor = instruction_descriptor(formats, columns, flips)
    found = {name: descriptor >> first & (1 << bits) - 1 for name, (first, bits) in FIELDS.items()}
    assert list(found.values()) == [*formats, *flips, columns // 8, 8]
    assert descriptor == sum(value << FIELDS[name][0] for name, value in found.items())


@pytest.mark.parametrize("count", range(1, 40))
def test_loads_are_of_powers_of_two(count: int) -> None:
    found = pieces_of(count)
    assert sum(found) == count
    assert all(piece in (1, 2, 4, 8, 16, 32) for piece in found)
    assert found == sorted(found, reverse=True)
