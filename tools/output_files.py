"""Writes results: whole or not at all."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mlirt.atomic_file import write_file
from mlirt.errors import InvalidInputError

if TYPE_CHECKING:
    from mlirt.tools.pass_view.history import PassHistory


def check_output(path: str | None, flag: str = "") -> None:
    """Refuse a path where no file can be put, before the work is done; `flag` is what the user gave it for."""
    if path is None or path == "-":
        return
    target = Path(path)
    what = "Is a directory" if target.is_dir() else "" if target.parent.is_dir() else "there is no such folder"
    if what:
        raise InvalidInputError(f"{flag and f'--{flag}: '}cannot write {path}: {what}")


def check_folder(path: str, flag: str) -> None:
    """Refuse a path where no folder can be, before the work is done."""
    target = Path(path)
    existing = next(one for one in (target, *target.parents) if one.exists())
    if not existing.is_dir():
        raise InvalidInputError(f"--{flag}={path}: {existing} is no folder")


def write_page(folder: str, title: str, history: PassHistory, problems: Sequence[str]) -> None:
    """Write the page of the passes that ran as `index.html` of a folder, which is made if it is not there."""
    from mlirt.tools.pass_view.page import page

    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInputError(f"--html={folder}: cannot make the folder: {error.strerror}") from error
    write_file(Path(folder) / "index.html", [page(title, history.passes, "\n".join(problems)).encode()])


def write_output(text: str, path: str | None) -> None:
    """Print a text, or put it in a file that appears only when it is complete."""
    if path is None or path == "-":
        sys.stdout.write(text)
        sys.stdout.flush()
        return
    write_file(path, [text.encode()])


def write_json(path: str, value: object) -> None:
    """Put a value into a JSON file."""
    import json

    write_file(path, [json.dumps(value, indent=1).encode()])
