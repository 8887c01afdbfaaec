"""The C compiler and the binary tools of this machine: found, and run, with what they say as one line."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from mlirt.errors import UnsupportedError
from mlirt.systems import LINUX, WINDOWS, architecture_of, system_of

_COMPILERS = ("cc", "gcc", "clang")
_OF_TARGETS = {(WINDOWS, "x86_64"): ("x86_64-w64-mingw32-gcc",), (LINUX, "aarch64"): ("aarch64-linux-gnu-gcc",)}
"""Those for another system or processor, which come first."""
_SHOWN = 300  # characters of what a tool says


def compiler(architecture: str | None, system: str = LINUX) -> list[str]:
    """The command of a C compiler for an architecture such as "x86_64" (None: any) and an operating system; raises
    UnsupportedError where there is none.
    """
    named = shlex.split(os.environ.get("CC", ""))
    usual = _OF_TARGETS.get((system, architecture or ""), ()) + _COMPILERS
    found = named or [name for name in usual if shutil.which(name)][:1]
    if not found or shutil.which(found[0]) is None:
        which = named[0] if named else f"none of {', '.join(usual)}"
        raise UnsupportedError(
            f"a C library needs a C compiler and a linker, and {which} is not on the PATH: install gcc or clang, or "
            "name one in CC"
        )
    machine = machine_of(found)
    is_other = architecture is not None and architecture_of(machine) != architecture
    if is_other or _system_of_compiler(machine) != system:
        wanted = f"{architecture or 'any processor'} under {system}"
        raise UnsupportedError(
            f"the C compiler {found[0]} is for {machine}, the plan for {wanted}: name another one in CC"
        )
    return found


def machine_of(command: Sequence[str]) -> str:
    """What a compiler makes code for, such as x86_64-linux-gnu."""
    return run([*command, "-dumpmachine"], Path.cwd()).strip()


def _system_of_compiler(machine: str) -> str:
    """GNU's names have the vendor left away at times, and call Windows by its library."""
    words = machine.split("-")[1:]
    if any(word.startswith(("mingw", "windows")) for word in words):
        return WINDOWS
    return LINUX if "linux" in words else system_of(machine)


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
