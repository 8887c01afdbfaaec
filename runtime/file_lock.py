"""One process at a time: a lock that the operating system drops with the process that holds it."""

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock of a file, which is made where it is missing."""
    with open(path, "a") as file:
        if sys.platform == "win32":
            _lock_first_byte(file.fileno())
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _lock_first_byte(number: int) -> None:
    """Windows's lock goes with the file that is closed; a try gives up after ten seconds."""
    msvcrt: Any = import_module("msvcrt")
    while True:
        try:
            os.lseek(number, 0, os.SEEK_SET)
            msvcrt.locking(number, msvcrt.LK_LOCK, 1)
            return
        except OSError as error:
            if error.errno != errno.EDEADLK:
                raise
