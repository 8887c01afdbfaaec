"""Lines as trtexec prints them: a time, a severity, a text."""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TextIO

from mlirt.errors import AccuracyWarning


def log(severity: str, text: str) -> None:
    """One line as trtexec prints it; errors and warnings of severity E go to standard error."""
    stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
    print(f"[{stamp}] [{severity}] {text}", file=sys.stderr if severity == "E" else sys.stdout, flush=True)


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
