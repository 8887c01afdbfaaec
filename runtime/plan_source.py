"""Where the bytes of a plan come from: memory, a small file, which is read, or a large one, which is mapped."""

from __future__ import annotations

import errno
import mmap
import os
import stat
from dataclasses import dataclass
from io import BufferedReader

import numpy as np

from mlirt.atomic_file import Bytes
from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.host_memory import aligned_empty

MOST_READ = 32 << 20
"""Bytes of a file that is read; larger ones are mapped."""


@dataclass(frozen=True)
class PlanSource:
    """The bytes, and for those of a mapped file what its state was before they were looked at."""

    data: memoryview
    path: str = ""
    state: tuple[int, ...] = ()

    def check_unchanged(self) -> None:
        """Raise PlanError where somebody has written to the file meanwhile: digests would say nothing of its bytes."""
        if not self.state:
            return
        now = _state(os.stat(self.path)) if os.path.exists(self.path) else self.state
        if now != self.state and now[0] == self.state[0]:  # another file may have come in its place
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
    if found.st_size <= MOST_READ:
        # Weights are used where they lie.
        data = aligned_empty((found.st_size,), np.dtype(np.uint8)).data
        return PlanSource(data[: file.readinto(data)].toreadonly())
    return PlanSource(memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)), path, _state(found))


def _state(found: os.stat_result) -> tuple[int, ...]:
    return found.st_ino, found.st_size, found.st_mtime_ns
