"""Memory of an allocator of the caller: what engines take of it, and that they give it back."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mlirt.errors import OutOfMemoryError
from mlirt.runtime.engine import load
from mlirt.runtime.plan_file import make_plan


class Pool:
    """Gives up to `most` bytes of arrays."""

    def __init__(self, most: int = 1 << 30) -> None:
        self.blocks: dict[int, np.ndarray] = {}
        self.left = most

    def take(self, size: int) -> int:
        self.left -= size
        if self.left < 0:
            raise OutOfMemoryError("the pool is empty")
        block = np.full(size + 256, 0xAB, np.uint8)
        address = block.ctypes.data + (-block.ctypes.data % 256)
        self.blocks[address] = block
        return address

    def give_back(self, address: int) -> None:
        del self.blocks[address]


@pytest.fixture
def plan(tiny: Callable[[], Any], tmp_path: Path) -> Path:
    parts = tiny()
    path = tmp_path / "tiny.plan"
    make_plan(parts.manifest, parts.sections, parts.weights).save(path)
    return path


def test_an_engine_lives_in_memory_of_its_allocator(plan: Path) -> None:
    pool = Pool()
    engine = load(plan, allocator=pool)
    x = np.random.default_rng(0).standard_normal((50, 4), np.float32)
    for rows in (3, 50, 7):
        found = engine.run({"x": x[:rows]})
        wanted = np.cos((2 * x[:rows] + 1).reshape(-1)[::-1]).reshape(rows, 4)
        np.testing.assert_allclose(found["y"], wanted, rtol=1e-5, atol=1e-6)
    assert len(pool.blocks) >= 2  # weights and an arena
    np.testing.assert_array_equal(load(plan).run({"x": x})["z"], engine.run({"x": x})["z"])
    del engine, found
    assert not pool.blocks


def test_an_empty_allocator_is_an_error_of_one_line(plan: Path) -> None:
    with pytest.raises(OutOfMemoryError, match="the pool is empty"):
        load(plan, allocator=Pool(16)).run({"x": np.ones((3, 4), np.float32)})
