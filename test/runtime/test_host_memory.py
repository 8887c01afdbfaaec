"""Memory of the host: alignment, and results whose memory is used again only when nobody holds them."""

import numpy as np

from mlirt.runtime.host_memory import ALIGNMENT, OutputMemory, address_of


def test_memory_of_released_results_is_used_again() -> None:
    memory = OutputMemory((3, 5), np.dtype(np.float32))
    first = memory.array()
    place = address_of(first)
    del first
    second = memory.array()
    assert address_of(second) == place
    assert (second.shape, second.dtype, place % ALIGNMENT) == ((3, 5), np.float32, 0)


def test_memory_of_results_that_somebody_holds_is_left_alone() -> None:
    memory = OutputMemory((4, 4), np.dtype(np.float32))
    held = memory.array()[1:, ::2].T
    held[...] = 7.0
    memory.array()[...] = 0.0
    assert np.all(held == 7.0)
    exported = memoryview(memory.array())  # pyright: ignore[reportArgumentType]
    other = memory.array()
    assert not np.shares_memory(np.asarray(exported), other)


def test_empty_results() -> None:
    memory = OutputMemory((0, 4), np.dtype(np.int64))
    assert memory.array().shape == memory.array().shape == (0, 4)
