"""Copies where kernels can read them: aligned, in C order, and no memory for those that nobody needs."""

from __future__ import annotations

import numpy as np
import pytest

from mlirt.aligned_memory import ALIGNMENT, AlignedMemory, is_aligned


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (3, 7), (1 << 20, 3), (5 << 20,)])
def test_copies_are_aligned_and_equal(shape: tuple[int, ...]) -> None:
    memory = AlignedMemory()
    memory.copy_of(np.ones(3, np.int8))
    array = np.random.default_rng(0).standard_normal(shape).astype(np.float32).T
    copy = memory.copy_of(array)
    assert copy.shape == array.shape
    assert not copy.nbytes or copy.ctypes.data % ALIGNMENT == 0
    np.testing.assert_array_equal(copy, array)


def test_small_copies_lie_side_by_side() -> None:
    memory = AlignedMemory()
    one, other = (memory.copy_of(np.full(10, value, np.float32)) for value in (1, 2))
    assert other.ctypes.data - one.ctypes.data == ALIGNMENT
    np.testing.assert_array_equal(one, 1)


def test_what_is_taken_back_makes_room() -> None:
    memory = AlignedMemory()
    one = memory.copy_of(np.ones(10, np.float32))
    memory.take_back(memory.copy_of(np.ones(99, np.float32)))
    assert memory.copy_of(np.ones(10, np.float32)).ctypes.data - one.ctypes.data == ALIGNMENT
    memory.take_back(one)  # not the last one: it stays
    assert memory.copy_of(np.ones(10, np.float32)).ctypes.data != one.ctypes.data


def test_copies_outlive_the_memory() -> None:
    copy = AlignedMemory().copy_of(np.arange(1000))
    np.testing.assert_array_equal(copy, np.arange(1000))


def test_what_counts_as_aligned() -> None:
    array = AlignedMemory().copy_of(np.zeros((32, 32), np.float32))
    assert is_aligned(array)
    assert not is_aligned(array.T)
    assert not is_aligned(array[0, 1:])
