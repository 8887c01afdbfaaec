"""The garbage collector while plans are built, saved and loaded: objects stay, and each full collection visits all."""

from __future__ import annotations

import gc
import threading
from collections.abc import Generator
from contextlib import contextmanager

# Objects more than those freed before the young ones are visited, and how rarely the older ones are. With Python's own
# (700 or 2000, 10, 10) a build of 1,000 layers spends a fifth of its time in collections; these cost some 50 MB.
_RARELY = (200_000, 20, 100)

_lock = threading.Lock()
_inside = 0
_usual = gc.get_threshold()


@contextmanager
def rare_collections() -> Generator[None]:
    """Collect rarely as long as anyone of this process is inside, in whichever thread; afterwards as before.

    Where the collector is off, or collects more rarely as the program asks, nothing changes.
    """
    global _inside, _usual
    with _lock:
        _inside += 1
        if _inside == 1:
            _usual = gc.get_threshold()
            if 0 < _usual[0] < _RARELY[0]:
                gc.set_threshold(*_RARELY)
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside and gc.get_threshold() == _RARELY:
                gc.set_threshold(*_usual)
