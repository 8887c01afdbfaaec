"""The commands that come with the package: each imports its tool, or says which package is not here."""

from __future__ import annotations

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
    return tool.main()
