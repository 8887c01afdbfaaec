"""The C compiler and the binary tools of this machine: found, and run, with what they say as one line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mlirt.errors import UnsupportedError

_COMPILERS = ("cc", "gcc", "clang")
_SHOWN = 300  # characters of what a tool says


def compiler(architecture: str) -> list[str]:
    """The command of a C compiler for an architecture such as "x86_64"; raises UnsupportedError where there is none."""
    named = shlex.split(os.environ.get("CC", ""))
    found = named or [name for name in _COMPILERS if shutil.which(name)][:1]
    if not found or shutil.which(found[0]) is None:
        which = named[0] if named else f"none of {', '.join(_COMPILERS)}"
        raise UnsupportedError(
            f"a C library needs a C compiler and a linker, and {which} is not on the PATH: install gcc or clang, or "
            "name one in CC"
        )
    machine = run([*found, "-dumpmachine"], Path.cwd()).strip()
    if machine.split("-")[0] not in (architecture, {"x86_64": "amd64"}.get(architecture)):
        raise UnsupportedError(
            f"the C compiler {found[0]} is for {machine}, the plan for {architecture}: name another one in CC"
        )
    return found


def run(command: Sequence[str], folder: Path) -> str:
    """What a command prints; raises UnsupportedError with what it says where it fails."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, errors="replace", check=False)
    except OSError as error:
        raise UnsupportedError(f"{command[0]} cannot be run: {error.strerror}") from error
    if done.returncode:
        lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
        errors = [line for line in lines if "error" in line or "undefined" in line] or lines
        said = "; ".join(errors[:2])[:_SHOWN] or f"exit code {done.returncode}"
        raise UnsupportedError(f"{command[0]} could not make the library: {said}")
    return done.stdout
