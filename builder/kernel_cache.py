"""Machine code that was made before, on disk, so that a second build of a network compiles nothing.

An entry is found by a digest of all that it was made from: source, compilers and their versions, the processor. It
begins with a digest of its key and itself, so that a damaged file, or that of another kernel, is no entry; what is not
machine code is none either. Writing is atomic, processes may share a folder, and whatever goes wrong with a file means
no more than a compilation.

Who can write an entry decides about the code that the next builds have in their plans. A folder that belongs to another
user, or that all users may write to, is therefore not used; a group that may write to it is trusted.

MLIRT_SHARED_CACHE is a folder or URL that machines share (builder/shared_store.py): what the own folder lacks is looked
for there, and what is compiled is written to both.
"""

from __future__ import annotations

import hashlib
import os
import stat
import sys
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from mlirt.atomic_file import write_atomically
from mlirt.builder.shared_store import open_store

_DIGEST_BYTES = 16
_SHARED = "MLIRT_SHARED_CACHE"
_KIND = "kernels"


def cache_folder() -> Path | None:
    """Where entries lie: MLIRT_CACHE, or mlirt/kernels in the user's cache folder; None where MLIRT_CACHE is `off`,
    and for a user without a home folder.
    """
    wanted = os.environ.get("MLIRT_CACHE", "")
    if wanted == "off":
        return None
    try:
        return Path(wanted).expanduser() if wanted else _users_caches() / "mlirt" / "kernels"
    except RuntimeError:  # nobody knows a home folder of this user
        return None


def _users_caches() -> Path:
    """The folder of the user's caches; raises `RuntimeError` for a user without a home folder."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")


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

    def __init__(self, folder: Path | None = None, *, shared: bool = True) -> None:
        """`shared`: whether entries are those of other machines, too."""
        wanted = folder if folder is not None else cache_folder()
        self.folder = wanted if wanted is not None and _is_trusted(wanted) else None
        where = os.environ.get(_SHARED, "")
        self._shared = open_store(where) if shared and where else None

    def get(self, key: str, is_code: Callable[[bytes], bool] = bool) -> bytes | None:
        """The bytes of an entry that are what `is_code` accepts; None where there is none, or a damaged one."""
        data = self._own(key, is_code)
        if data is not None or self._shared is None:
            return data
        data = self._shared.get(f"{_KIND}/{key}")
        if data is None or not is_code(data):
            return None
        self._keep(key, data)
        return data

    def _own(self, key: str, is_code: Callable[[bytes], bool]) -> bytes | None:
        if self.folder is None:
            return None
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        data = content[_DIGEST_BYTES:]
        return data if content[:_DIGEST_BYTES] == _digest(key, data) and is_code(data) else None

    def put(self, key: str, data: bytes) -> None:
        """Keep an entry; a folder that cannot be written is not an error."""
        self._keep(key, data)
        if self._shared is not None:
            self._shared.put(f"{_KIND}/{key}", data)

    def _keep(self, key: str, data: bytes) -> None:
        if self.folder is None:
            return
        path = self._path(key)
        try:
            self.folder.mkdir(mode=0o755, parents=True, exist_ok=True)
            path.parent.mkdir(mode=0o755, exist_ok=True)
            write_atomically(path, [_digest(key, data), data])
        except OSError:
            return

    def _path(self, key: str) -> Path:
        assert self.folder is not None
        return self.folder / key[:2] / f"{key}.code"


def _digest(key: str, data: bytes) -> bytes:
    state = hashlib.blake2b(key.encode() + b"\n", digest_size=_DIGEST_BYTES)
    state.update(data)
    return state.digest()


def _is_trusted(folder: Path) -> bool:
    """Whether nobody but its owner, who is this user or root, and a group decides what is in a folder."""
    if not hasattr(os, "getuid"):
        return True
    try:
        found = folder.stat()
    except OSError:
        return True  # it is made when something is put there, or nothing comes from it
    if found.st_uid not in (os.getuid(), 0):
        why = "belongs to another user"
    elif found.st_mode & stat.S_IWOTH:
        why = "may be written by all users (`chmod o-w` ends that)"
    else:
        return True
    if folder not in _told:
        _told.add(folder)
        warnings.warn(f"the kernel cache {folder} is not used: it {why}; MLIRT_CACHE names another", stacklevel=4)
    return False


_told: set[Path] = set()
