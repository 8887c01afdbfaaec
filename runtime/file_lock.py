"""One process at a time: a lock that the operating system drops with the process that holds it."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(path: Path) -> Generator[None]:
    """Hold the lock of a file, which is made where it is missing; without such locks in the system just go on."""
    try:
        import fcntl
    except ImportError:
        yield
        return
    with open(path, "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
