"""Writes results: whole or not at all."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from mlirt.atomic_file import write_file
from mlirt.errors import InvalidInputError


def check_output(path: str | None, flag: str = "") -> None:
    """Refuse a path where no file can be put, before the work is done; `flag` is what the user gave it for."""
    if path is None or path == "-":
        return
    target = Path(path)
    what = "Is a directory" if target.is_dir() else "" if target.parent.is_dir() else "there is no such folder"
    if what:
        raise InvalidInputError(f"{flag and f'--{flag}: '}cannot write {path}: {what}")


def write_output(text: str, path: str | None) -> None:
    """Print a text, or put it in a file that appears only when it is complete."""
    if path is None or path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_file(path, [text.encode()])


def write_json(path: str, value: object) -> None:
    """Put a value into a JSON file."""
    write_file(path, [json.dumps(value, indent=1).encode()])
