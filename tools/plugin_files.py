"""Runs the Python files that --plugins names, so that the creators in them are found."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from traceback import extract_tb

from mlirt.errors import InvalidInputError, UnsupportedError

_LIBRARIES = (".so", ".dll", ".dylib")


def add_plugins_flag(add: Callable[..., object]) -> None:
    """The flag, for a parser or a group of one."""
    add(
        "--plugins",
        metavar="FILE",
        action="append",
        default=[],
        help="run a Python file that registers creators of plugins; may be given again",
    )


def warn_on_standard_error(text: str) -> None:
    print(f"warning: {text}", file=sys.stderr)


def run_plugin_files(arguments: argparse.Namespace, warn: Callable[[str], None] = warn_on_standard_error) -> None:
    """Run each file once, in the order given; a file that registers nothing is warned of.

    Raises `InvalidInputError` where a file cannot be run, in one line that names it.
    """
    paths: Sequence[str] = arguments.plugins
    if not paths:
        return
    from mlirt.tensorrt.plugins.registry import get_plugin_registry

    registry = get_plugin_registry()
    for path in dict.fromkeys(paths):
        before = len(registry.all_creators)
        _run(Path(path))
        if len(registry.all_creators) == before:
            warn(f"--plugins={path} registers no creator that was not there; see get_plugin_registry()")


def _run(path: Path) -> None:
    if path.suffix in _LIBRARIES:
        raise UnsupportedError(f"--plugins={path}: plugins are Python classes; give the file that registers them")
    if not path.is_file():
        raise InvalidInputError(f"--plugins={path}: {'that is a folder' if path.is_dir() else 'there is no such file'}")
    # The names of files that are modules already, such as one that plugins are imported from, stay those modules'.
    name = str(path) if path.stem in sys.modules else path.stem
    spec = spec_from_file_location(name, path, loader=SourceFileLoader(name, str(path)))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    sys.path.insert(0, str(path.resolve().parent))  # as Python does for the file that it is called with
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        sys.modules.pop(name, None)
        raise InvalidInputError(f"--plugins={path}: {_said(error, path)}") from error


def _said(error: BaseException, path: Path) -> str:
    """An error in one line, with the line of the file that it came through last."""
    lines = [frame.lineno for frame in extract_tb(error.__traceback__) if frame.filename == str(path)]
    where = f"line {lines[-1]}: " if lines else ""
    return f"{where}{type(error).__name__}: {' '.join(str(error).split())}"
