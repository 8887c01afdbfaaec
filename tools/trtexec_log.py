"""Lines as trtexec prints them: a time, a severity, a text; and what a program reads in their place."""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TextIO

from mlirt.errors import AccuracyWarning
from mlirt.tools.terminal_styles import styled

_STYLES = {"E": "red", "W": "yellow"}


@dataclass
class _Output:
    """How it is told: `quiet` leaves out what is no warning, `as_json` collects, and sends all lines aside."""

    quiet: bool = False
    as_json: bool = False
    found: dict[str, Any] = field(default_factory=dict[str, Any])


_output = _Output()


@contextmanager
def told_as(*, quiet: bool, as_json: bool) -> Generator[None]:
    """With `quiet` warnings and errors alone are told meanwhile. With `as_json` lines go to standard error, and in the
    end what was noted is one JSON object on standard output.
    """
    global _output
    before, _output = _output, _Output(quiet, as_json)
    try:
        yield
        if as_json:
            print(json.dumps(_output.found, indent=1), flush=True)
    finally:
        _output = before


def note(key: str, value: object) -> None:
    """A part of the JSON object, if somebody wants one."""
    _output.found[key] = value


def banner(text: str) -> None:
    """The first and the last line of a program."""
    if not _output.quiet:
        stream = sys.stderr if _output.as_json else sys.stdout
        style = "red" if " FAILED " in text else "green" if " PASSED " in text else ""
        print(styled(text, style, stream), file=stream, flush=True)


def log(severity: str, text: str, style: str = "") -> None:
    """One line as trtexec prints it; those of severity E go to standard error. `style`: of the text, on a terminal."""
    if severity in "EW":
        _output.found.setdefault("errors" if severity == "E" else "warnings", []).append(text)
    elif _output.quiet:
        return
    stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
    stream = sys.stderr if severity == "E" or _output.as_json else sys.stdout
    head, shown = styled(f"[{stamp}] [{severity}]", "dim", stream), styled(text, _STYLES.get(severity, style), stream)
    print(f"{head} {shown}", file=stream, flush=True)


def log_all(severity: str, lines: Sequence[str]) -> None:
    """Several lines."""
    for line in lines:
        log(severity, line)


@contextmanager
def cautions() -> Generator[list[str]]:
    """Warnings are lines of severity W meanwhile; the first clauses of those about accuracy are given."""
    found: list[str] = []

    def show(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        file: TextIO | None = None,
        line: str | None = None,
    ) -> None:
        log("W", " ".join(str(message).split()))
        if issubclass(category, AccuracyWarning):
            found.append(str(message).partition(",")[0])

    with warnings.catch_warnings():
        warnings.simplefilter("always", AccuracyWarning)
        warnings.showwarning = show
        yield found
