"""Machine code that was made before, on disk, so that a second build of a network compiles nothing.

An entry is found by a digest of all that it was made from: source, compilers and their versions, the processor. It
begins with a digest of itself, so that a damaged file is no entry. Writing is atomic, processes may share a folder,
and whatever goes wrong with a file means no more than a compilation.
"""

from __future__ import annotations

import hashlib
import os
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mlirt.runtime.atomic_file import write_atomically

_DIGEST_BYTES = 16


def cache_folder() -> Path | None:
    """Where entries lie: MLIRT_CACHE, or mlirt/kernels in the user's cache folder; None where MLIRT_CACHE is `off`."""
    wish = os.environ.get("MLIRT_CACHE", "")
    if wish == "off":
        return None
    if wish:
        return Path(wish)
    if sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA", Path.home() / "AppData" / "Local"))
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "mlirt" / "kernels"


def key_of(*parts: str) -> str:
    """The name of an entry made from these parts, in this order."""
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = part.encode()
        state.update(len(data).to_bytes(8, "little"))
        state.update(data)
    return state.hexdigest()


@cache
def versions(*packages: str) -> str:
    """Python's version and those of packages, without importing them."""
    found = [f"python {sys.version_info.major}.{sys.version_info.minor}"]
    for package in packages:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} none")
    return ", ".join(found)


@cache
def sources_digest(*paths: Path) -> str:
    """A digest of Python files and of those in folders: when the compiler changes, its old entries do not count."""
    state = hashlib.blake2b(digest_size=16)
    for path in paths:
        for file in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            state.update(file.name.encode() + file.read_bytes())
    return state.hexdigest()


class KernelCache:
    """Entries by key; without a folder it holds nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder if folder is not None else cache_folder()

    def get(self, key: str) -> bytes | None:
        """The bytes of an entry; None where there is none, or a damaged one."""
        if self.folder is None:
            return None
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        data = content[_DIGEST_BYTES:]
        return data if content[:_DIGEST_BYTES] == _digest(data) else None

    def put(self, key: str, data: bytes) -> None:
        """Keep an entry; a folder that cannot be written is not an error."""
        if self.folder is None:
            return
        path = self._path(key)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, [_digest(data), data])
        except OSError:
            return

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / key


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST_BYTES).digest()
