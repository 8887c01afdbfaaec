"""The program ptxas as an assembler of whole programs, where MLIRT_ASSEMBLER names one."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from mlirt.builder.assemblers.assembler_log import cubin_of, one_line, refusal
from mlirt.builder.cubin import Cubin
from mlirt.errors import CompileError

_LIMIT_S = 600


def assemble(program: str, text: str, architecture: str, name: str) -> Cubin:
    """Assemble the PTX of a kernel; `CompileError` where the program does not start, or refuses it."""
    text = _in_known_version(program, text)
    with TemporaryDirectory(prefix="mlirt-ptxas-") as folder:
        given, made = Path(folder, "kernel.ptx"), Path(folder, "kernel.cubin")
        given.write_text(text, encoding="utf-8")
        ended = _run(program, f"--gpu-name={architecture}", "--verbose", f"--output-file={made}", str(given))
        log = ended.stdout + ended.stderr
        if ended.returncode != 0 or not made.is_file():
            raise refusal("ptxas", name, architecture, log)
        return cubin_of(made.read_bytes(), log)


@cache
def version_of(program: str) -> str:
    """What the program says of itself; raises `CompileError` where it does not start."""
    ended = _run(program, "--version")
    found = re.search(r"\bV(\d+(?:\.\d+)+)", ended.stdout)
    if found is None:
        raise CompileError(f"MLIRT_ASSEMBLER={program} is no ptxas: {one_line(ended.stdout + ended.stderr)[:200]}")
    return found[1]


@cache
def _newest_ptx(program: str) -> tuple[int, int]:
    """The newest version of PTX that the program reads; (0, 0) where it does not tell."""
    found = re.findall(r"^\s*(\d+)\.(\d+)\s*$", _run(program, "--list-version").stdout, flags=re.MULTILINE)
    return max(((int(major), int(minor)) for major, minor in found), default=(0, 0))


def _in_known_version(program: str, text: str) -> str:
    """PTX that says a version which the program reads: it refuses newer ones even where nothing in the text is new."""
    newest, own = _newest_ptx(program), re.search(r"^\.version (\d+)\.(\d+)", text, flags=re.MULTILINE)
    if own is None or newest == (0, 0) or (int(own[1]), int(own[2])) <= newest:
        return text
    return text.replace(own[0], f".version {newest[0]}.{newest[1]}", 1)


def _run(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            [program, *arguments], capture_output=True, text=True, errors="replace", timeout=_LIMIT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CompileError(f"the assembler {program} did not run: {error}") from error
