"""The record that an earlier revision of the repository would make: its own compiler runs in a copy of it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from mlirt.errors import InvalidInputError
from mlirt.tools.replay.record_file import Record, read_record


def record_of_revision(path: str, revision: str) -> Record:
    """What a record's networks became at a revision, with all texts; `path` is the record, in a git repository.

    Raises `InvalidInputError` where there is no such revision, or it cannot record.
    """
    record = Path(path).resolve()
    root = Path(_git(record.parent, "rev-parse", "--show-toplevel"))
    commit = _git(root, "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}")
    with tempfile.TemporaryDirectory(prefix="mlirt-revision-") as folder:
        copy, made = Path(folder) / "copy", Path(folder) / "record.json"
        _git(root, "clone", "--quiet", "--shared", "--no-checkout", str(root), str(copy))
        _git(copy, "checkout", "--quiet", "--detach", commit)
        command = ["-m", "mlirt.tools.rt_replay", "record", str(record.relative_to(root)), "--texts", "-o", str(made)]
        environment = dict(os.environ, PYTHONPATH=str(copy / "src"), PYTHONDONTWRITEBYTECODE="1")
        done = subprocess.run(
            [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise InvalidInputError(f"--since={revision}: that revision cannot record: {_last(done.stderr)}")
        return read_record(str(made))


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(folder), *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise InvalidInputError(f"--since needs git, which cannot be run: {error.strerror}") from error
    if done.returncode:
        raise InvalidInputError(f"--since: git {arguments[0]} {arguments[-1]}: {_last(done.stderr) or 'nothing found'}")
    return done.stdout.strip()


def _last(text: str) -> str:
    return " ".join(text.strip().splitlines()[-1:])
