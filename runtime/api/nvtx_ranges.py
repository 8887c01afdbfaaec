"""Ranges of NVTX around a run and each of its layers, where a profiler such as Nsight Systems listens (17.10, 28.7)."""

from __future__ import annotations

import ctypes
import importlib
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Protocol

_TOOL = "NVTX_INJECTION64_PATH"  # what profilers set in the programs that they start
_LIBRARIES = ("libnvToolsExt.so.1", "libnvToolsExt.so", "nvToolsExt64_1.dll")


class Listener(Protocol):
    """What takes ranges, of which each lies inside of the one that was pushed before it."""

    def push(self, name: str) -> None: ...
    def pop(self) -> None: ...


class _Package:
    """The package `nvtx`."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def push(self, name: str) -> None:
        self._module.push_range(message=name, domain="TensorRT")

    def pop(self) -> None:
        self._module.pop_range(domain="TensorRT")


class _Library:
    """NVTX's own library."""

    def __init__(self, library: Any) -> None:
        self._library = library

    def push(self, name: str) -> None:
        self._library.nvtxRangePushA(name.encode())

    def pop(self) -> None:
        self._library.nvtxRangePop()


def listener() -> Listener | None:
    """Who takes ranges: the package `nvtx` that the program has imported, or what a profiler can hear; else None."""
    if "nvtx" in sys.modules:
        return _Package(sys.modules["nvtx"])
    if not os.environ.get(_TOOL):
        return None
    try:
        return _Package(importlib.import_module("nvtx"))
    except ImportError:
        library = _library()
        return None if library is None else _Library(library)


def _library() -> Any:
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    return None


@contextmanager
def nvtx_range(to: Listener | None, name: str) -> Generator[None]:
    """A range of this name; nothing where nobody listens."""
    if to is None:
        yield
        return
    to.push(name)
    try:
        yield
    finally:
        to.pop()
