"""The lit configuration of a folder of tests outside the repository, in two lines of its `lit.cfg.py`:

    from mlirt.tools.lit_config import configure
    configure()

RUN lines find rt-opt and the other tools beside the Python that runs lit, and `filecheck` (also as `FileCheck`, where
LLVM's is not installed). `%plugins` stands for a `--load-pass-plugin` of each Python file in the folder that defines a
pass.
"""

from __future__ import annotations

import ast
import inspect
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from shlex import quote
from typing import Any

from mlirt.errors import InvalidInputError

PLUGINS = "%plugins"
_CALL = "mlirt.tools.lit_config"
_ELSEWHERE = "configure() is called in a lit.cfg.py, by lit"


def configure(config: Any = None, name: str | None = None) -> None:
    """Set up lit for the `.mlir` files in the folder of the `lit.cfg.py` that calls this, and below it.

    `config` is the object that lit puts into the file; without it, that one is found there, so that a file without
    names of lit pleases type checkers. Tests may have `REQUIRES: cuda`. What they write (`%t`) lies in the folder
    `.lit` beside them. Settings of `config` can be changed afterwards, as lit documents them. Raises
    `InvalidInputError` where it is called elsewhere.
    """
    import lit.formats  # pyright: ignore[reportMissingTypeStubs]

    folder, given = _caller()
    config = given.get("config") if config is None else config
    if config is None:
        raise InvalidInputError(_ELSEWHERE)
    config.name = name or folder.name
    config.test_format = lit.formats.ShTest()
    config.suffixes = [".mlir"]
    config.excludes = [".lit", "Output"]
    config.test_source_root = str(folder)
    config.test_exec_root = str(folder / ".lit")
    config.environment["PATH"] = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    config.environment["MLIRT_PLAN_CACHE_MB"] = "0"  # tests see what the compiler does, not what it did
    for variable in ("PYTHONPATH", "HOME", "MLIRT_CACHE"):
        if variable in os.environ:
            config.environment[variable] = os.environ[variable]
    config.substitutions.append((PLUGINS, plugin_flags(folder)))
    if shutil.which("FileCheck") is None:
        config.substitutions.append((r"\bFileCheck\b", "filecheck"))
    if _has_cuda():
        config.available_features.add("cuda")


def plugin_flags(folder: Path) -> str:
    """`--load-pass-plugin=FILE` for each Python file of a folder that defines a class of `ModulePass`, by name."""
    return " ".join(f"--load-pass-plugin={quote(str(path))}" for path in sorted(folder.glob("*.py")) if _has_pass(path))


def configured_folder(file: Path) -> Path | None:
    """The folder whose `lit.cfg.py` is for a test and calls `configure`; None where there is none."""
    for folder in file.resolve().parents:
        config = folder / "lit.cfg.py"
        if config.is_file():
            return folder if _CALL in config.read_text(encoding="utf-8") else None
    return None


def _caller() -> tuple[Path, Mapping[str, Any]]:
    """The folder of the file that calls `configure`, and the names that lit gives to it."""
    frame = inspect.currentframe()
    caller = frame.f_back.f_back if frame is not None and frame.f_back is not None else None
    path = Path(caller.f_code.co_filename if caller is not None else "")
    if caller is None or not path.is_file():
        raise InvalidInputError(_ELSEWHERE)
    return path.resolve().parent, caller.f_globals


def _has_pass(path: Path) -> bool:
    """Whether a file defines a pass; it is read, not executed."""
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return False
    bases = [base for node in tree.body if isinstance(node, ast.ClassDef) for base in node.bases]
    return any(ast.unparse(base).rpartition(".")[2].endswith("Pass") for base in bases)


def _has_cuda() -> bool:
    from mlirt.builder.host import gpu_is_here

    return gpu_is_here()
