"""Entries of the kernel cache come back as they were put, or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from mlirt.builder import kernel_cache
from mlirt.builder.cubin import Cubin, packed, unpacked
from mlirt.builder.host import cpu_target
from mlirt.builder.kernel_cache import KernelCache, cache_folder, key_of, sources_digest
from mlirt.builder.numba_cpu import compile_kernels

_SOURCE = """from mlirt.builder.numba_cpu_intrinsics import float32, float32_pointer

def fill(params, worker, workers):
    float32_pointer(params[0])[0] = float32(1)
"""


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


def test_the_entry_of_another_key_is_none(tmp_path: Path) -> None:
    cache, key, other = KernelCache(tmp_path), key_of("cpu"), key_of("cuda")
    cache.put(key, b"code")
    cache.put(other, b"other")
    one, two = (tmp_path / name[:2] / f"{name}.code" for name in (key, other))
    two.write_bytes(one.read_bytes())
    assert cache.get(other) is None
    assert cache.get(key) == b"code"


def test_what_is_no_machine_code_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A right digest says who wrote an entry, not that a linker can take it."""
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path))
    code = compile_kernels({"fill": _SOURCE}, cpu_target())["fill"]
    (entry,) = (path for path in tmp_path.rglob("*") if path.is_file())
    for damaged in (b"garbage", code[:-1], code.replace(b"fill", b"kill"), code[:0x28] + b"\xff" * 8 + code[0x30:]):
        KernelCache(tmp_path).put(entry.stem, damaged)
        assert compile_kernels({"fill": _SOURCE}, cpu_target())["fill"] == code
        assert KernelCache(tmp_path).get(entry.stem) == code


@pytest.mark.parametrize("entry", [b"", b"[1, 2]", b"[1, 2]\nno code", b"{}\n", b"[1]\n\x7fELF", b"\xff\n"])
def test_what_is_no_cubin_is_none(entry: bytes) -> None:
    code = b"\x7fELF\x02\x01" + bytes(12) + b"\xbe\x00" + bytes(60)
    assert unpacked(packed(Cubin(code, 1, 2))) == Cubin(code, 1, 2)
    assert unpacked(entry) is None


@pytest.mark.skipif(not hasattr(os, "getuid"), reason="this system has no owners of files")
def test_a_folder_that_others_decide_about_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache, key = KernelCache(tmp_path), key_of("cpu")
    cache.put(key, b"code")
    tmp_path.chmod(0o777)
    with pytest.warns(UserWarning, match="may be written by all users"):
        assert KernelCache(tmp_path).get(key) is None
    assert KernelCache(tmp_path).get(key) is None  # told once
    tmp_path.chmod(0o775)
    assert KernelCache(tmp_path).get(key) == b"code"
    monkeypatch.setattr(os, "getuid", lambda: tmp_path.stat().st_uid + 1)
    if tmp_path.stat().st_uid == 0:
        assert KernelCache(tmp_path).get(key) == b"code"  # root is trusted
        os.chown(tmp_path, 12345, -1)
    monkeypatch.setattr(kernel_cache, "_told", set[Path]())
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert KernelCache(tmp_path).get(key) is None


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


def test_a_tilde_is_the_home_folder_and_without_one_nothing_is_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MLIRT_CACHE", "~/kernels")
    assert cache_folder() == tmp_path / "kernels"

    def nobody(_: type[Path]) -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", classmethod(nobody))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("MLIRT_CACHE")
    assert cache_folder() is None
    assert KernelCache().get(key_of("cpu")) is None


def test_a_change_of_the_compiler_changes_the_digest(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("a")
    before = sources_digest(tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.py").write_text("b")
    assert sources_digest(other) != before
