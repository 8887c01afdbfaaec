"""Lines as trtexec prints them: a time, a severity, a text."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence


def log(severity: str, text: str) -> None:
    """One line as trtexec prints it; errors and warnings of severity E go to standard error."""
    stamp = time.strftime("%m/%d/%Y-%H:%M:%S")
    print(f"[{stamp}] [{severity}] {text}", file=sys.stderr if severity == "E" else sys.stdout, flush=True)


def log_all(severity: str, lines: Sequence[str]) -> None:
    """Several lines."""
    for line in lines:
        log(severity, line)
