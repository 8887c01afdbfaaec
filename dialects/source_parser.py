"""Parses IR text and remembers where in the text each op stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError, VerifyException

from mlirt.dialects.source_mistakes import check_property_names, mistake
from mlirt.dialects.verification import first_lines
from mlirt.errors import InvalidModelError


@dataclass(frozen=True)
class SourcePosition:
    """A place in a file, counted from 1."""

    file: str
    line: int
    column: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


class SourceError(InvalidModelError):
    """The text is not IR; the position says where it stops being so."""

    def __init__(self, position: SourcePosition, message: str) -> None:
        self.position = position
        self.text = message
        super().__init__(f"{position}: error: {message}")


@dataclass
class SourceMap:
    """Where the ops of a parsed text stand in it."""

    file: str
    text: str
    starts: dict[Operation, int] = field(default_factory=dict[Operation, int])

    def position(self, op: Operation) -> SourcePosition | None:
        """The place of an op, or of the nearest op around it that came from the text."""
        around: Operation | None = op
        while around is not None:
            if around in self.starts:
                return self.at(self.starts[around])
            around = around.parent_op()
        return None

    def at(self, offset: int) -> SourcePosition:
        line = self.text.count("\n", 0, offset) + 1
        return SourcePosition(self.file, line, offset - (self.text.rfind("\n", 0, offset) + 1) + 1)


class _SourceParser(Parser):
    def __init__(self, ctx: Context, source: SourceMap) -> None:
        super().__init__(ctx, source.text, source.file)
        self.source = source

    def parse_operation(self) -> Operation:
        start = self.pos
        try:
            op = super().parse_operation()
            check_property_names(op)
        except SourceError:
            raise
        except (VerifyException, ValueError, TypeError, ArithmeticError, NotImplementedError) as error:
            # An attribute that breaks its own constraint fails while it is made, where xDSL knows no position.
            raise SourceError(self.source.at(start), first_lines(error)) from error
        self.source.starts[op] = start
        return op


def parse_source(ctx: Context, text: str, file: str) -> tuple[ModuleOp, SourceMap]:
    """Parse a module; raises `SourceError` with the line and column of the first mistake."""
    source = SourceMap(file, text)
    if _says_nothing(text):
        return ModuleOp([]), source
    try:
        module = _SourceParser(ctx, source).parse_module()
    except ParseError as error:
        start, message = mistake(error, text, ctx)
        raise SourceError(source.at(start), message) from error
    except RecursionError as error:
        raise SourceError(source.at(0), "the IR is nested too deeply to be read") from error
    source.starts.setdefault(module, 0)
    return module, source


def _says_nothing(text: str) -> bool:
    """As in MLIR, a text of comments alone is an empty module."""
    return all(not line.strip() or line.lstrip().startswith("//") for line in text.splitlines())
