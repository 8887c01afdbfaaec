"""nvdisasm, which prints machine code as text: from its package, or where the environment names it."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from mlirt.errors import CompileError, MissingPackageError

PACKAGE = "nvidia-cuda-nvdisasm"
_PLACES = ("cu*/bin/nvdisasm", "cuda_nvdisasm/bin/nvdisasm")
_PATIENCE = 300  # seconds


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


def disassemble(cubin: bytes) -> str:
    """The text of a cubin's functions; raises `CompileError` where nvdisasm refuses it."""
    with tempfile.TemporaryDirectory(prefix="mlirt-cubin-") as folder:
        path = Path(folder) / "kernel.cubin"
        path.write_bytes(cubin)
        command = [str(find_nvdisasm()), "-c", str(path)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise CompileError(f"nvdisasm ({command[0]}) cannot be run: {error}") from error
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).replace(str(path), "the cubin").split())
        raise CompileError(f"nvdisasm refuses a cubin: {reason[:300]}")
    return done.stdout
