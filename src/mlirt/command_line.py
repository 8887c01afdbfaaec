"""The commands that come with the package: each imports its tool, or says which package is not here."""

from __future__ import annotations

import os
import sys
from importlib import import_module

from mlirt.errors import missing_package


def rt_opt() -> int:
    return _run("rt-opt")


def rt_translate() -> int:
    return _run("rt-translate")


def rt_exec() -> int:
    return _run("rt-exec")


def rt_report() -> int:
    return _run("rt-report")


def rt_debug() -> int:
    return _run("rt-debug")


def rt_replay() -> int:
    return _run("rt-replay")


def rt_update_checks() -> int:
    return _run("rt-update-checks")


def rt_lab() -> int:
    return _run("rt-lab")


def rt_serve() -> int:
    return _run("rt-serve")


def trtexec() -> int:
    return _run("trtexec")


def _run(command: str) -> int:
    try:
        tool = import_module(f"mlirt.tools.{command.replace('-', '_')}")
    except ModuleNotFoundError as error:
        print(f"{command}: error: {missing_package(command, error)}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(f"{command}: interrupted", file=sys.stderr)
        return 130
    try:
        code = tool.main()
        sys.stdout.flush()
    except BrokenPipeError:
        return reader_has_gone()
    return code


def reader_has_gone() -> int:
    """Broken pipe: the reader of the output has ended, as in `rt-exec .. | head`. Gives the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.__stdout__.fileno() if sys.__stdout__ else 1)
    return 1
