"""The garbage collector during builds: IR is millions of objects that stay, and each full collection visits all."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

# Objects more than those freed before the young ones are visited, and how rarely the older ones are. With Python's own
# (700 or 2000, 10, 10) a build of 1,000 layers spends a fifth of its time in collections; these cost some 50 MB.
_RARELY = (200_000, 20, 100)

_lock = threading.Lock()
_builds = 0
_usual = gc.get_threshold()


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect rarely as long as any build of this process runs, in whichever thread; afterwards as before.

    Where the collector is off, or collects more rarely as the program asks, nothing changes.
    """
    global _builds, _usual
    with _lock:
        _builds += 1
        if _builds == 1:
            _usual = gc.get_threshold()
            if 0 < _usual[0] < _RARELY[0]:
                gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        with _lock:
            _builds -= 1
            if not _builds and gc.get_threshold() == _RARELY:
                gc.set_threshold(*_usual)
