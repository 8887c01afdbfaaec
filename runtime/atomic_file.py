"""Writes a file as a whole or not at all, so that a failure never leaves half a file behind."""

import os
import secrets
from collections.abc import Iterable
from pathlib import Path

Bytes = bytes | bytearray | memoryview


def write_atomically(path: Path, pieces: Iterable[Bytes]) -> None:
    """Write `pieces` to a temporary file beside `path`, then rename it; raise OSError and leave nothing on failure.

    The error names `path`, not the temporary file.
    """
    partial = path.with_name(f".{path.name[:200]}.{secrets.token_hex(6)}.tmp")
    try:
        with open(partial, "xb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        partial.unlink(missing_ok=True)
