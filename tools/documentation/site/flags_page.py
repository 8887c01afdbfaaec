"""The reference of all flags: what each tool prints for `--help`, which its parser makes."""

from __future__ import annotations

import io
import os
from collections.abc import Generator
from contextlib import contextmanager, redirect_stdout
from importlib import import_module

from mlirt import command_line

_HEAD = """\
# All flags

What each tool prints for `--help`. [The tools](tools.md) shows them at work; `--print-completion` is for
[the shell](notebooks.md#completion).
"""
_WIDTH = "84"


def tools() -> list[str]:
    """The names of the commands of the package."""
    return sorted(name.replace("_", "-") for name in vars(command_line) if name.startswith("rt_"))


def flags_page() -> str:
    """The page."""
    return _HEAD + "".join(f"\n## {tool}\n\n```text\n{_help_of(tool)}```\n" for tool in tools())


def _help_of(tool: str) -> str:
    printed = io.StringIO()
    with redirect_stdout(printed), _columns():
        import_module(f"mlirt.tools.{tool.replace('-', '_')}").main(["--help"])
    return printed.getvalue()


@contextmanager
def _columns() -> Generator[None]:
    """argparse asks the environment for the width of the terminal."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = _WIDTH
    try:
        yield
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
