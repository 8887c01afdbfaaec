"""Files of models that are mapped to be read once or twice: their pages are given back while a build goes on."""

from __future__ import annotations

import mmap
import os
from typing import Any
from weakref import WeakValueDictionary

_mapped: WeakValueDictionary[tuple[int, ...], MappedFile] = WeakValueDictionary()
"""By what tells one state of a file from another."""


class MappedFile(mmap.mmap):
    """A file of a model, which nothing writes to through this."""


def map_file(path: str | os.PathLike[str]) -> MappedFile:
    """The bytes of a file that is not empty; the same mapping as long as somebody has it. Raises OSError."""
    with open(path, "rb") as file:
        found = os.fstat(file.fileno())
        state = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
        mapping = _mapped.get(state)
        if mapping is None:
            _mapped[state] = mapping = MappedFile(file.fileno(), 0, access=mmap.ACCESS_READ)
    return mapping


def is_mapped(array: object) -> bool:
    """Whether the elements of an array are in a mapped file of a model."""
    owner: Any = array
    while not isinstance(owner, MappedFile):
        owner = owner.obj if isinstance(owner, memoryview) else getattr(owner, "base", None)
        if owner is None:
            return False
    return True


def release_pages() -> None:
    """Give back the memory of what was read of mapped models. Who reads it again gets it from the system's cache."""
    if hasattr(mmap, "MADV_DONTNEED"):
        for mapping in list(_mapped.values()):
            mapping.madvise(mmap.MADV_DONTNEED)
