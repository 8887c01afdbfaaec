"""Writes a file as a whole or not at all, so that a failure never leaves half a file behind.

What is not a regular file (a device, a pipe, standard output) is never replaced but written to, and so is what a
symbolic link leads to: the link stays.
"""

import errno
import os
import re
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from mlirt.errors import InvalidInputError

Bytes = bytes | bytearray | memoryview

_STREAMS = (1, 2)
_ABANDONED_SECONDS = 3600.0
_REPLACE_SECONDS = 2.0


def write_file(path: str | os.PathLike[str], pieces: Iterable[Bytes], what: str = "") -> None:
    """`write_atomically` for a path of the user: InvalidInputError, with what is written, where it cannot be."""
    try:
        write_atomically(path, pieces)
    except OSError as error:
        name = os.fspath(path)
        raise InvalidInputError(f"cannot write {what and f'{what} '}{name or repr(name)}: {error.strerror}") from error


def write_atomically(path: str | os.PathLike[str], pieces: Iterable[Bytes]) -> None:
    """Write `pieces` to a file that appears at `path` when it is complete; raise OSError and leave nothing on failure.

    The error names `path`, not the temporary file. A file that is replaced hands on its permissions.
    """
    name = os.fspath(path)
    if "\0" in name:
        raise OSError(errno.EINVAL, "a path cannot have a zero byte", name)
    try:
        stream = _special(name)
        if stream is None:
            _replace(os.path.realpath(name) if name else name, pieces)
            return
        with stream:
            for piece in pieces:
                stream.write(piece)
    except OSError as error:
        raise OSError(error.errno, error.strerror, name) from error


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """A path for a library that writes files itself: what it has written there is put at `path` in the end."""
    with tempfile.TemporaryDirectory(prefix=".mlirt-", dir=os.path.dirname(os.path.realpath(path))) as folder:
        partial = Path(folder, path.name)
        yield partial
        if not is_special(path):
            _put(partial, os.path.realpath(path))
            return
        with open(partial, "rb") as source, open(path, "wb") as target:
            shutil.copyfileobj(source, target)


def is_special(path: str | os.PathLike[str]) -> bool:
    """Whether there is something at a path, or where it leads to, that is neither a regular file nor a folder."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _special(name: str) -> BinaryIO | None:
    """What is open for writing where there is something that must not be replaced; None where there is not."""
    try:
        found = os.stat(name)
    except FileNotFoundError:
        return None
    for number in _STREAMS:
        with suppress(OSError):
            if os.path.samestat(found, os.fstat(number)):  # `-o /dev/stdout > file`: the file has what came before
                sys.stdout.flush()
                return open(os.dup(number), "wb")
    return None if stat.S_ISREG(found.st_mode) else open(name, "wb")


def _replace(path: str, pieces: Iterable[Bytes]) -> None:
    folder, name = os.path.split(path)
    _remove_abandoned(folder or ".", name)
    partial = os.path.join(folder, f".{name[:200]}.{os.urandom(6).hex()}.tmp")
    file, is_named = _new_file(folder or ".", partial)
    try:
        with file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            with suppress(OSError, AttributeError):
                os.fchmod(file.fileno(), stat.S_IMODE(os.stat(path).st_mode))
            os.fsync(file.fileno())
            if not is_named:
                # A folder makes it `linkat`, which alone follows the link to the file.
                os.link(_by_number(file), partial, src_dir_fd=file.fileno(), follow_symlinks=True)
        _put(partial, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(partial)


def _put(partial: str | os.PathLike[str], path: str) -> None:
    """Put a file in the place of another one. Under Windows that fails as long as somebody reads the other one, such as
    a process that looks for viruses: so it is tried for a moment.
    """
    until = time.monotonic() + (_REPLACE_SECONDS if sys.platform == "win32" else 0)
    while True:
        try:
            os.replace(partial, path)
            return
        except PermissionError:
            if time.monotonic() >= until:
                raise
            time.sleep(0.02)


def _new_file(folder: str, partial: str) -> tuple[BinaryIO, bool]:
    """A file without a name, which goes with the process that is killed while it writes; where there are none, one
    with the name `partial`."""
    if hasattr(os, "O_TMPFILE"):
        with suppress(OSError):
            file = open(os.open(folder, os.O_TMPFILE | os.O_WRONLY, 0o666), "wb")
            if os.path.exists(_by_number(file)):
                return file, False
            file.close()
    return open(partial, "xb"), True


def _by_number(file: BinaryIO) -> str:
    return f"/proc/self/fd/{file.fileno()}"


def _remove_abandoned(folder: str, name: str) -> None:
    """Remove what processes that were killed have left of this file; none takes an hour between two writes."""
    ours = re.compile(re.escape(f".{name[:200]}.") + r"[0-9a-f]{12}\.tmp")
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if ours.fullmatch(entry.name) and time.time() - entry.stat().st_mtime > _ABANDONED_SECONDS:
                os.unlink(entry.path)
