"""Who of several callers needs the lock of Python's interpreter: they look at a word before they wait for the lock.

Kernels run without that lock, and a caller whose kernels are done needs it again. Where another caller has it, for the
few microseconds in which Python prepares its next run, waiting for the lock means to sleep and to be woken, which takes
tens of microseconds and happens in every second run of two callers. So a caller that comes back from its kernels looks
at the door first: who comes back closes it, and opens it by beginning other kernels. It looks for a while only, and for
an eighth less each time that this was in vain, for nobody knows what the other one does in Python. The door is no lock:
whatever stands in it, results are the same.

`mlirt_alone` (builder/spmd_code/alone.py) reads it: word 0 is the address of the job of who is in Python, or 0, word 1
the pauses to wait for at most, now, and word 2 the most that word 1 can be.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable

from mlirt.runtime.host_memory import HostBlock

_WORD = 8
_MAX_SECONDS = 50e-6
_block: HostBlock | None = None
_lock = threading.Lock()


def interpreter_door(pauses_per_second: Callable[[], float]) -> int:
    """The address of the process's door, which is made where it is the first one."""
    global _block
    with _lock:
        if _block is None:
            block = HostBlock(3 * _WORD)
            most = max(1, int(_MAX_SECONDS * pauses_per_second()))
            words = (ctypes.c_int64 * 3).from_address(block.address)
            words[1] = words[2] = most
            _block = block
        return _block.address
