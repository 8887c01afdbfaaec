"""Reads the texts that a report is made of."""

from __future__ import annotations

from pathlib import Path

from mlirt.errors import InvalidInputError


def read_text(path: Path) -> str:
    """The text of a file; raises `InvalidInputError` where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInputError(f"cannot read {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInputError(f"cannot read {path}: byte {error.start} is no text") from error
