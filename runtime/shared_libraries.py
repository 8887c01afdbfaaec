"""Finds libraries that CUDA programs share: those of nvidia's Python packages, those already loaded, the system's."""

import ctypes
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path


def load_shared(names: Sequence[str]) -> ctypes.CDLL | None:
    """The first library of these file names that loads, such as `libcublasLt.so.13`; None where there is none.

    Packages come first: other packages of the process want the version that is installed beside them.
    """
    for name in names:
        for place in (*map(str, _in_packages(name)), name):
            try:
                return ctypes.CDLL(place)
            except OSError:
                continue
    return None


def _in_packages(name: str) -> Iterator[Path]:
    """`nvidia/cu13/lib/..` and `nvidia/cublas/lib/..` of the folders that Python imports from, but the current one."""
    for folder in filter(None, sys.path):
        yield from sorted(Path(folder).glob(f"nvidia/*/lib/{name}"))
