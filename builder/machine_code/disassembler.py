"""nvdisasm, which prints machine code as text: from its package, or where the environment names it."""

from __future__ import annotations

import os
import re
import shutil
import struct
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mlirt.builder.machine_code.merged_cubins import architecture_flags, merged
from mlirt.errors import CompileError, MissingPackageError

PACKAGE = "nvidia-cuda-nvdisasm"
_PLACES = ("cu*/bin/nvdisasm", "cuda_nvdisasm/bin/nvdisasm")
_TIMEOUT_SECONDS = 300  # seconds
_AT_ONCE = 32  # cubins
_SECTION = re.compile(r"^(?=//-+ \.text\.)", re.MULTILINE)
_MARK = re.compile(r"\$\$\$(\d+)\$")


@cache
def find_nvdisasm() -> Path:
    """The program: NVDISASM of the environment, that of the package, else the one on the path.

    Raises `MissingPackageError`.
    """
    if named := os.environ.get("NVDISASM"):
        return Path(named)
    packages = find_spec("nvidia")
    roots = [] if packages is None else [Path(root) for root in packages.submodule_search_locations or ()]
    found = [path for root in roots for place in _PLACES for path in sorted(root.glob(place))]
    other = shutil.which("nvdisasm")
    if found or other:
        return found[-1] if found else Path(str(other))
    raise MissingPackageError(
        f"reading machine code needs nvdisasm, which is not installed here: `pip install {PACKAGE}`, or name the "
        "program in the environment variable NVDISASM",
        name=PACKAGE,
    )


def disassemble(cubins: Sequence[bytes]) -> list[str]:
    """The text of the functions of each cubin; raises `CompileError` where nvdisasm refuses one.

    Many are read at once. Labels are numbered through all cubins that were read together.
    """
    found: dict[int, str] = {}
    by_architecture: dict[int, list[int]] = {}
    for number, cubin in enumerate(cubins):
        by_architecture.setdefault(architecture_flags(cubin), []).append(number)
    for numbers in by_architecture.values():
        for batch in batched(numbers):
            found.update(zip(batch, _texts([cubins[number] for number in batch]), strict=True))
    return [found[number] for number in range(len(cubins))]


def batched(numbers: Sequence[int]) -> Iterator[Sequence[int]]:
    """Parts that are read at once."""
    for start in range(0, len(numbers), _AT_ONCE):
        yield numbers[start : start + _AT_ONCE]


def _texts(cubins: Sequence[bytes]) -> list[str]:
    """The texts of cubins for one architecture, by one process; by one for each where they cannot be read together."""
    if len(cubins) == 1:
        return [_printed(cubins[0])]
    try:
        return _separated(_printed(merged(cubins, [_mark(number) for number in range(len(cubins))])), len(cubins))
    except (CompileError, ValueError, IndexError, struct.error):
        return [_printed(cubin) for cubin in cubins]


def _mark(number: int) -> str:
    return f"$$${number}$"


def _separated(text: str, count: int) -> list[str]:
    """The sections of each of so many cubins, without the marks of their names."""
    parts = [list[str]() for _ in range(count)]
    for section in _SECTION.split(text)[1:]:
        mark = _MARK.search(section)
        if mark is None:
            raise ValueError("nvdisasm prints a function that was not given to it")
        parts[int(mark[1])].append(section.replace(mark[0], ""))
    if not all(parts):
        raise ValueError("nvdisasm prints no function of a cubin")
    return ["".join(sections) for sections in parts]


def _printed(cubin: bytes) -> str:
    with tempfile.TemporaryDirectory(prefix="mlirt-cubin-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [str(find_nvdisasm()), "-c", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"nvdisasm ({command[0]}) cannot be run: {error}") from error
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).replace(str(path), "the cubin").split())
        raise CompileError(f"nvdisasm refuses a cubin: {reason[:300]}")
    return done.stdout
