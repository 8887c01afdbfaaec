"""What the tools say about a mistake: one line with a place, a severity and a text."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.dialects.diagnostics import OperationError
from mlirt.dialects.source_parser import SourceError, SourceMap, SourcePosition
from mlirt.dialects.verification import first_lines
from mlirt.errors import MlirtError
from mlirt.passes.pipeline import PassError


@dataclass(frozen=True)
class Diagnostic:
    """One complaint; the position is that of the op, or of the file where no op is known."""

    file: str
    position: SourcePosition | None
    message: str
    severity: str = "error"

    def __str__(self) -> str:
        return f"{self.position or self.file}: {self.severity}: {self.message}"


def diagnostic_of(error: MlirtError, file: str, source: SourceMap | None) -> Diagnostic:
    """The line for an error; the source map knows where its op stands in the input."""
    if isinstance(error, SourceError):
        return Diagnostic(file, error.position, error.text)
    op = error.op if isinstance(error, (OperationError, PassError)) else None
    position = source.position(op) if source is not None and op is not None else None
    return Diagnostic(file, position, first_lines(error).removeprefix(f"{file}: "))
