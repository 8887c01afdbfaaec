"""Runs plans on the processor that it runs on: what bench/emulated.py starts there, and asks by pipes."""

from __future__ import annotations

import ctypes
import os
import sys
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np

_MAX_ENGINES = 2
_PAGE, _GAP = 4096, 1 << 36
_PRIVATE, _THERE, _ANONYMOUS, _UNRESERVED = 0x2, 0x10, 0x20, 0x4000


def keep_memory_together() -> None:
    """Let all memory that is asked for from here on lie together, as code and its constants are linked by 32 bits.

    Where a place that is asked for is taken, QEMU's user mode gives one that is terabytes away, but goes on at the old
    one, behind which all is free, for whoever names no place. With the pages there taken both get what the system
    chooses.
    """
    system = ctypes.CDLL(None)
    system.mmap.restype = ctypes.c_void_p
    system.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *(ctypes.c_int,) * 3, ctypes.c_long]
    flags = _PRIVATE | _ANONYMOUS
    here = system.mmap(None, _PAGE, 0, flags, -1, 0)
    system.mmap(here + _PAGE, _GAP, 0, flags | _UNRESERVED | _THERE, -1, 0)


def main() -> None:
    # Whatever prints goes to the errors, so that answers are alone on their pipe.
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    sys.path.append(str(Path(__file__).parent))
    from emulated_messages import read_message, write_message

    import mlirt

    if "--together" in sys.argv:
        keep_memory_together()
    engines: OrderedDict[str, Any] = OrderedDict()
    while True:
        try:
            header, feeds = read_message(sys.stdin.buffer)
        except EOFError:
            return
        try:
            path = header["plan"]
            if path not in engines:
                engines[path] = mlirt.load(path)
            while len(engines) > _MAX_ENGINES:
                engines.popitem(last=False)
            found = engines[path].run(feeds)
        except Exception as error:
            write_message(answers, {"error": type(error).__name__, "text": str(error)}, {})
        else:
            write_message(answers, {}, {name: np.asarray(value) for name, value in found.items()})


if __name__ == "__main__":
    main()
