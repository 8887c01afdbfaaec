"""What is said of a kernel function that cannot be read: its file and line, what was expected, and what came."""

from __future__ import annotations

import linecache
from pathlib import Path

from mlirt.errors import CompileError


class KernelLanguageError(CompileError):
    """A statement of a kernel function that cannot be read. `callers` are the lines that called it, innermost first."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.callers: list[str] = []
        self.reader: object = None  # of the call that it has come through last

    def __str__(self) -> str:
        return super().__str__() + "".join(f" (called from {place})" for place in self.callers)


def refusal(file: str, line: int, text: str) -> KernelLanguageError:
    """The error for a line of a file."""
    source = linecache.getline(file, line).strip()
    return KernelLanguageError(f"{place(file, line)}: {text}" + (f", in `{source}`" if source else ""))


def place(file: str, line: int) -> str:
    """A line of a file, which is named from the working directory where it lies in there."""
    path = Path(file)
    return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{line}"
