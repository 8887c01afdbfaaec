"""`python -m mlirt.as_tensorrt script.py ..`: runs a program that was written for TensorRT, unchanged.

    python -m mlirt.as_tensorrt [--version 8.5.3] script.py arguments..
    python -m mlirt.as_tensorrt [--version 8.5.3] -m module arguments..
    python -m mlirt.as_tensorrt [--version 8.5.3] -c code arguments..
    python -m mlirt.as_tensorrt [--version 8.5.3] command arguments..

In the program and the Python programs that it starts, `import tensorrt` is mlirt, which reports the version that is
asked for, and the command `trtexec` is rt-exec. Where there is no CUDA device, CUDA's runtime is the host's memory.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

from mlirt.tensorrt.reported_version import VARIABLE, VERSIONS, checked_version

_HERE = Path(__file__).resolve().parent / "import_names"


def main(argv: Sequence[str] | None = None) -> int:
    """Become the program; comes back only with 2, where the arguments are wrong, or with 127 for a missing command."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    version = None
    if arguments and arguments[0].partition("=")[0] == "--version":
        version = arguments.pop(0).partition("=")[2]
        if not version:
            version = arguments.pop(0) if arguments else ""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__, file=sys.stderr if not arguments else sys.stdout)
        return 0 if arguments else 2
    try:
        environment = environment_for(version)
    except ValueError as error:
        print(f"mlirt.as_tensorrt: error: {error}", file=sys.stderr)
        return 2
    command = _command(arguments, environment["PATH"])
    if command is None:
        print(f"mlirt.as_tensorrt: error: {arguments[0]}: there is no such file or command", file=sys.stderr)
        return 127
    os.execve(command[0], command, environment)


def environment_for(version: str | None = None) -> dict[str, str]:
    """The environment in which Python programs find mlirt as TensorRT; raises `ValueError` for an unknown version."""
    wanted = checked_version(version or os.environ.get(VARIABLE) or VERSIONS[0])
    return {
        **os.environ,
        VARIABLE: wanted,
        "MLIRT_PYTHON": sys.executable,
        "PYTHONPATH": _before("PYTHONPATH", _HERE / "start"),
        "PATH": _before("PATH", _HERE / "bin"),
    }


def _before(variable: str, folder: Path) -> str:
    others = [one for one in os.environ.get(variable, "").split(os.pathsep) if one and one != str(folder)]
    return os.pathsep.join([str(folder), *others])


def _command(arguments: Sequence[str], path: str) -> list[str] | None:
    """What to execute: Python for a script, a module or code, else the command of that name."""
    first = arguments[0]
    if first.startswith("-") or first.endswith(".py") or Path(first).is_dir():
        return [sys.executable, *arguments]
    found = shutil.which(first, path=path)
    if found is None:
        return [sys.executable, *arguments] if Path(first).is_file() else None
    return [found, *arguments[1:]]


if __name__ == "__main__":
    sys.exit(main())
