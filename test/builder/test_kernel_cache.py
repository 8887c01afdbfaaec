"""Entries of the kernel cache come back as they were put, or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.builder.kernel_cache import KernelCache, cache_folder, key_of, sources_digest


def test_an_entry_comes_back(tmp_path: Path) -> None:
    cache, key = KernelCache(tmp_path), key_of("cpu", "source")
    assert cache.get(key) is None
    cache.put(key, b"code")
    assert cache.get(key) == b"code"
    assert KernelCache(tmp_path / "elsewhere").get(key) is None


@pytest.mark.parametrize("damage", [b"", b"short", b"x" * 40])
def test_a_damaged_entry_is_none(tmp_path: Path, damage: bytes) -> None:
    cache, key = KernelCache(tmp_path), key_of("cpu")
    cache.put(key, b"code")
    (file,) = [path for path in tmp_path.rglob("*") if path.is_file()]
    file.write_bytes(damage)
    assert cache.get(key) is None
    cache.put(key, b"new")
    assert cache.get(key) == b"new"


def test_parts_of_a_key_do_not_run_together() -> None:
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of("a") != key_of("a", "")


def test_a_folder_that_cannot_be_written_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = KernelCache(tmp_path / "file" / "below")
    cache.put(key_of("cpu"), b"code")
    assert cache.get(key_of("cpu")) is None


def test_the_folder_can_be_chosen_or_switched_off(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path
    monkeypatch.setenv("MLIRT_CACHE", "off")
    assert cache_folder() is None
    cache = KernelCache()
    cache.put(key_of("cpu"), b"code")
    assert cache.get(key_of("cpu")) is None


def test_a_change_of_the_compiler_changes_the_digest(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a")
    before = sources_digest(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("b")
    assert sources_digest(other) != before
