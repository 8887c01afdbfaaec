"""Where the bytes of a plan come from: memory, a small file, which is read, or a large one, which is mapped.

Windows lets nobody replace a file that is mapped, not even the process itself: there all files are read.
"""

from __future__ import annotations

import errno
import mmap
import os
import stat
import sys
from dataclasses import dataclass
from io import BufferedReader
from weakref import WeakValueDictionary

import numpy as np

from mlirt.atomic_file import Bytes
from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.host_memory import aligned_empty

MAX_READ_BYTES = 32 << 20
"""Bytes of a file that is read; larger ones are mapped."""
_MAPS = sys.platform != "win32"

_mapped: WeakValueDictionary[tuple[int, ...], mmap.mmap] = WeakValueDictionary()
"""The plan files that this process has mapped, by their state: one mapping each."""


@dataclass(frozen=True)
class PlanFile:
    """A plan file that is too large to be read, and the state in which its plan was found."""

    path: str
    state: tuple[int, ...]

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is there as it was."""
        return state_of(self.path) == self.state


@dataclass(frozen=True)
class PlanSource:
    """The bytes, and for those of a mapped file what its state was before they were looked at."""

    data: memoryview
    path: str = ""
    state: tuple[int, ...] = ()

    @property
    def file(self) -> PlanFile | None:
        """The file, where it is mapped."""
        return PlanFile(os.path.abspath(self.path), self.state) if self.state else None

    def release_pages(self) -> None:
        """Give back the memory of what was read of a mapped file; who reads it again gets it from the system's
        cache.
        """
        if isinstance(self.data.obj, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
            self.data.obj.madvise(mmap.MADV_DONTNEED)

    def check_unchanged(self) -> None:
        """Raise PlanError where somebody has written to the file meanwhile: digests would say nothing of its bytes."""
        if not self.state:
            return
        now = state_of(self.path) or self.state
        if now != self.state and now[:2] == self.state[:2]:  # another file may have come in its place
            raise PlanError(f"the plan file {self.path} was written to while it was read; load it once it is complete")


def open_source(source: str | os.PathLike[str] | Bytes) -> PlanSource:
    """The bytes of a plan; PlanError for a file that cannot be read, InvalidInputError for what is no bytes."""
    if not isinstance(source, str | os.PathLike):
        try:
            return PlanSource(memoryview(source).cast("B").toreadonly())
        except TypeError as error:
            kind = type(source).__name__
            raise InvalidInputError(f"a plan is the path of a plan file or its bytes, but it is {kind}") from error
    path = os.fspath(source)
    if "\0" in path:
        raise PlanError(f"cannot open the plan file {path!r}: a path cannot have a zero byte")
    try:
        with open(path, "rb") as file:
            return _of_file(file, path)
    except OSError as error:
        if error.errno == errno.ENOMEM:
            raise MemoryError(f"no room for the plan file {path}") from error
        raise PlanError(f"cannot open the plan file {path}: {error.strerror}") from error


def _of_file(file: BufferedReader, path: str) -> PlanSource:
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode):
        return PlanSource(memoryview(file.read()))  # a pipe
    if found.st_size == 0:
        raise PlanError(f"{path}: the file is empty, so it is no plan file")
    if found.st_size <= MAX_READ_BYTES or not _MAPS:
        # Weights are used where they lie.
        data = aligned_empty((found.st_size,), np.dtype(np.uint8)).data
        return PlanSource(data[: file.readinto(data)].toreadonly())
    state = _state(found)
    mapping = _mapped.get(state)
    if mapping is None:
        _mapped[state] = mapping = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    return PlanSource(memoryview(mapping), path, state)


def large_file(path: str | os.PathLike[str]) -> PlanFile | None:
    """The plan file at a path, where it is one that would be mapped."""
    state = state_of(os.fspath(path))
    is_large = _MAPS and bool(state) and os.path.isfile(path) and os.path.getsize(path) > MAX_READ_BYTES
    return PlanFile(os.path.abspath(path), state) if is_large else None


def state_of(path: str) -> tuple[int, ...]:
    """What is another one when other bytes are in a file; empty where there is no file."""
    try:
        return _state(os.stat(path))
    except (OSError, ValueError):
        return ()


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
