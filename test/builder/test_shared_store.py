"""Entries that machines share: by many writers at once, signed, in a folder or what fsspec opens."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from dense_network import dense_network

import mlirt
from mlirt.builder import numba_cpu
from mlirt.builder.kernel_cache import KernelCache, key_of
from mlirt.builder.shared_store import is_shared, open_store
from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.errors import InvalidInputError

WRITER = """
import sys
from mlirt.builder.kernel_cache import KernelCache, key_of
from mlirt.builder.tactics.timing_cache import TimingCache

number, where = sys.argv[1:]
for step in range(20):
    KernelCache().put(key_of("all", str(step)), b"code" * 1000 + bytes([step]))
    times = TimingCache()
    times.put("a GPU", f"op {number}", {f"tactic {step}": float(step + 1)})
    times.put("a GPU", "op of all", {f"tactic {number}": 1.5})
    times.save(where)
"""


@pytest.fixture
def key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "key"
    path.write_bytes(bytes(range(32)))
    monkeypatch.setenv("MLIRT_CACHE_KEY_FILE", str(path))
    return path


@pytest.fixture(params=["folder", "url"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "folder":
        (tmp_path / "shared").mkdir()
        return str(tmp_path / "shared")
    pytest.importorskip("fsspec", reason="needs the package of mlirt[farm]")
    return f"memory://{tmp_path.name}"


@pytest.mark.usefixtures("key_file")
def test_entries_come_back_from_folders_and_urls(where: str) -> None:
    store, name = open_store(where), "kernels/0123456789abcdef"
    assert is_shared(where)
    assert store.get(name) is None
    assert list(store.entries("kernels")) == []
    store.put(name, b"code")
    assert store.get(name) == b"code"
    assert list(store.entries("kernels")) == [b"code"]
    times = TimingCache()
    times.put("a GPU", "op", {"tactic": 2.0})
    times.save(where)
    times.save(where)
    assert len(list(store.entries("times"))) == 1, "what is known is not written again"
    assert TimingCache.load(where).get("a GPU", "op") == {"tactic": 2.0}


@pytest.mark.usefixtures("key_file")
def test_many_processes_write_at_once(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    environment = {**os.environ, "MLIRT_SHARED_CACHE": str(shared)}
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(number), str(shared)],
            env={**environment, "MLIRT_CACHE": str(tmp_path / f"own{number}")},
        )
        for number in range(4)
    ]
    assert [writer.wait(120) for writer in writers] == [0] * 4
    times = TimingCache.load(shared)
    for number in range(4):
        assert times.get("a GPU", f"op {number}") == {f"tactic {step}": step + 1.0 for step in range(20)}
    assert times.get("a GPU", "op of all") == {f"tactic {number}": 1.5 for number in range(4)}
    store = open_store(shared)
    assert sorted(store.entries("kernels")) == [b"code" * 1000 + bytes([step]) for step in range(20)]
    assert not [path for path in shared.rglob("*") if path.suffix == ".tmp"]


def test_a_wrong_signature_is_logged_and_not_used(
    key_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("MLIRT_SHARED_CACHE", str(shared))
    key = key_of("a kernel")
    KernelCache(tmp_path / "one").put(key, b"code")
    assert KernelCache(tmp_path / "two").get(key) == b"code", "from the shared folder"
    assert KernelCache(tmp_path / "two", shared=False).get(key) == b"code", "and then its own"

    strange = tmp_path / "strange"
    strange.write_bytes(b"another key of somebody")
    monkeypatch.setenv("MLIRT_CACHE_KEY_FILE", str(strange))
    with caplog.at_level(logging.WARNING, "mlirt"):
        assert KernelCache(tmp_path / "three").get(key) is None
    assert "the signature of kernels/" in caplog.text

    monkeypatch.setenv("MLIRT_CACHE_KEY_FILE", str(key_file))
    (entry,) = (shared / "kernels").iterdir()
    other = shared / "kernels" / key_of("another kernel")
    other.write_bytes(entry.read_bytes())
    assert KernelCache(tmp_path / "four").get(key_of("another kernel")) is None, "an entry is signed with its name"
    content = bytearray(entry.read_bytes())
    for damaged in (b"", content[:10], bytes(content[:-1]) + b"x"):
        entry.write_bytes(damaged)
        assert KernelCache(tmp_path / "five").get(key) is None


def test_a_store_without_a_key_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLIRT_CACHE_KEY_FILE", raising=False)
    with pytest.raises(InvalidInputError, match="let MLIRT_CACHE_KEY_FILE name a file with a key"):
        TimingCache.load(tmp_path)
    monkeypatch.setenv("MLIRT_CACHE_KEY_FILE", str(tmp_path / "none"))
    with pytest.raises(InvalidInputError, match="cannot be read"):
        TimingCache.load(tmp_path)
    (tmp_path / "short").write_bytes(b"key")
    monkeypatch.setenv("MLIRT_CACHE_KEY_FILE", str(tmp_path / "short"))
    with pytest.raises(InvalidInputError, match="has 3 bytes; expected at least 16"):
        TimingCache.load(tmp_path)


@pytest.mark.usefixtures("key_file")
def test_an_unknown_scheme_is_an_error() -> None:
    pytest.importorskip("fsspec", reason="needs the package of mlirt[farm]")
    with pytest.raises(InvalidInputError, match="cannot be opened"):
        open_store("nosuchscheme://bucket/path")


@pytest.mark.usefixtures("key_file")
def test_what_another_machine_compiled_is_not_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    monkeypatch.setenv("MLIRT_SHARED_CACHE", str(shared))
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path / "first"))
    first = mlirt.compile(dense_network(), "cpu", threads=1)
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path / "second"))
    monkeypatch.setattr(numba_cpu, "_compile", _refuse)
    second = mlirt.compile(dense_network(), "cpu", threads=1)
    x = {"x": np.linspace(-1, 1, 24, dtype=np.float32).reshape(3, 8)}
    assert np.array_equal(first.run(x)["y"], second.run(x)["y"])
    monkeypatch.setenv("MLIRT_CACHE", str(tmp_path / "third"))
    monkeypatch.delenv("MLIRT_SHARED_CACHE")
    with pytest.raises(AssertionError, match="compiles"):
        mlirt.compile(dense_network(), "cpu", threads=1)


def _refuse(*_: object) -> dict[str, bytes]:
    raise AssertionError("it compiles")
