"""Signed entries that machines of a build farm share: a folder of a shared file system, or an object store's URL.

An entry is written once, under a name that follows from what it is, as a whole or not at all, so that any number of
processes may write at the same time: those that write the same name write the same. It begins with a signature of its
name and its bytes (HMAC with SHA-256); one whose signature is another is logged and counts as missing, before anything
in it is read. Who has the key is trusted with the code that the others' plans get: MLIRT_CACHE_KEY_FILE names its file.

URLs such as s3://bucket/builds are opened with the package fsspec (`mlirt[farm]`).
"""

from __future__ import annotations

import hashlib
import hmac
import logging
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from mlirt.atomic_file import write_atomically
from mlirt.errors import InvalidInputError

_LOG = logging.getLogger("mlirt")
_KEY_FILE = "MLIRT_CACHE_KEY_FILE"
_MIN_KEY_BYTES = 16
_SIGNATURE_BYTES = 32
_NAME = re.compile(r"[a-z]+/[0-9a-f]{8,64}")


class Place(Protocol):
    """Bytes by name; whatever goes wrong is an exception."""

    def read(self, name: str) -> bytes | None: ...
    def write(self, name: str, data: bytes) -> None: ...
    def names(self, kind: str) -> list[str]: ...


class SharedStore:
    """Entries by names such as `kernels/0123abcd..`; what cannot be read or written is logged, and no error."""

    def __init__(self, place: Place, key: bytes, where: str) -> None:
        """`key`: of signatures, at least 16 bytes. `where`: what the log calls the place."""
        if len(key) < _MIN_KEY_BYTES:
            raise InvalidInputError(f"the key of {where} has {len(key)} bytes; expected at least {_MIN_KEY_BYTES}")
        self._place, self._key, self._where = place, key, where

    def get(self, name: str) -> bytes | None:
        """The bytes of an entry; None where there is none, or its signature is wrong."""
        try:
            content = self._place.read(_checked(name))
        except Exception as error:  # each object store has exceptions of its own
            _LOG.warning("mlirt: %s: %s cannot be read: %s", self._where, name, error)
            return None
        if content is None:
            return None
        data = content[_SIGNATURE_BYTES:]
        if hmac.compare_digest(content[:_SIGNATURE_BYTES], self._signature(name, data)):
            return data
        _LOG.warning("mlirt: %s: the signature of %s is wrong; it is not used", self._where, name)
        return None

    def put(self, name: str, data: bytes) -> None:
        """Write an entry."""
        try:
            self._place.write(_checked(name), self._signature(name, data) + data)
        except Exception as error:
            _LOG.warning("mlirt: %s: %s cannot be written: %s", self._where, name, error)

    def entries(self, kind: str) -> Iterator[bytes]:
        """All entries of a kind, such as `times`, in the order of their names."""
        try:
            names = sorted(self._place.names(kind))
        except Exception as error:
            _LOG.warning("mlirt: %s cannot be listed: %s", self._where, error)
            return
        for name in names:
            if _NAME.fullmatch(name) and (data := self.get(name)) is not None:
                yield data

    def _signature(self, name: str, data: bytes) -> bytes:
        return hmac.digest(self._key, name.encode() + b"\n" + data, hashlib.sha256)


def is_shared(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a URL or a folder."""
    text = os.fspath(path)
    return "://" in text or os.path.isdir(text)


def open_store(where: str | os.PathLike[str]) -> SharedStore:
    """The store at a URL or in a folder; `InvalidInputError` where there is no key, or it cannot be opened."""
    return _opened(os.fspath(where), os.environ.get(_KEY_FILE, ""))


@cache
def _opened(where: str, key_file: str) -> SharedStore:
    if not key_file:
        raise InvalidInputError(
            f"entries of {where} are signed: let {_KEY_FILE} name a file with a key that the build machines share, "
            "such as 32 random bytes"
        )
    try:
        key = Path(key_file).read_bytes()
    except OSError as error:
        raise InvalidInputError(f"{_KEY_FILE}: {key_file} cannot be read: {error.strerror}") from error
    scheme, separator, path = where.partition("://")
    if not separator or scheme == "file":
        return SharedStore(_Folder(Path(path if separator else where)), key, where)
    return SharedStore(_ObjectStore(where), key, where)


class _Folder:
    """Of this machine, or of several; an entry appears when it is complete."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def read(self, name: str) -> bytes | None:
        try:
            return (self._folder / name).read_bytes()
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        path = self._folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, [data])

    def names(self, kind: str) -> list[str]:
        return [f"{kind}/{path.name}" for path in (self._folder / kind).glob("*")]


class _ObjectStore:
    """What fsspec opens: an object appears when its upload has ended."""

    def __init__(self, url: str) -> None:
        try:
            fsspec: Any = import_module("fsspec")
        except ModuleNotFoundError as error:
            raise InvalidInputError(f"{url} needs the package fsspec: `pip install 'mlirt[farm]'`") from error
        try:
            self._files, self._root = fsspec.core.url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise InvalidInputError(f"{url} cannot be opened: {error}") from error

    def read(self, name: str) -> bytes | None:
        try:
            return bytes(self._files.cat_file(f"{self._root}/{name}"))
        except FileNotFoundError:
            return None

    def write(self, name: str, data: bytes) -> None:
        self._files.pipe_file(f"{self._root}/{name}", data)

    def names(self, kind: str) -> list[str]:
        try:
            found: list[str] = self._files.ls(f"{self._root}/{kind}", detail=False)
        except FileNotFoundError:
            return []
        return [f"{kind}/{path.rsplit('/', 1)[-1]}" for path in found]


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name of an entry")
    return name
