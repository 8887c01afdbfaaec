"""Files of models are mapped once, and their pages come back when somebody reads them again."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from mlirt.mapped_files import is_mapped, map_file, release_pages


def test_a_file_is_mapped_once_as_long_as_it_is_the_same(tmp_path: Path) -> None:
    path = tmp_path / "weights.bin"
    path.write_bytes(b"old")
    first = map_file(path)
    assert map_file(str(path)) is first
    (tmp_path / "new").write_bytes(b"new")
    os.replace(tmp_path / "new", path)
    assert bytes(map_file(path)) == b"new"
    assert bytes(first) == b"old"


def test_released_pages_are_read_again(tmp_path: Path) -> None:
    path, numbers = tmp_path / "weights.bin", np.arange(100_000)
    path.write_bytes(numbers.tobytes())
    mapped = np.frombuffer(map_file(path), numbers.dtype)
    for _ in range(2):
        np.testing.assert_array_equal(mapped, numbers)
        release_pages()


def test_what_lies_in_a_mapped_file(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(bytes(64))
    mapping = map_file(tmp_path / "weights.bin")
    mapped = np.frombuffer(memoryview(mapping)[8:], np.uint8).view(np.float32)[2:]
    assert is_mapped(mapped)
    assert not is_mapped(mapped.copy())
    assert not is_mapped(np.frombuffer(bytes(8), np.uint8))
