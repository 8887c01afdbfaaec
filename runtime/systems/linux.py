"""Linux: LLVM's loader brings code into memory."""

from __future__ import annotations

import ctypes
from functools import cache

from mlirt.runtime.systems.posix import PosixSystem


class LinuxSystem(PosixSystem):
    """As the interface says."""

    loads_by_llvm = True
    anonymous = 0x20

    def function(self, name: str) -> int:
        """Python itself may have been linked without the functions of mathematics."""
        _load_math_library()
        return super().function(name)


@cache
def _load_math_library() -> None:
    for name in ("libm.so.6", "libm.so"):
        try:
            ctypes.CDLL(name, mode=ctypes.RTLD_GLOBAL)
            return
        except OSError:
            continue
