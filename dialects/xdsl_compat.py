"""The rough edges of xDSL 0.74.0, wrapped in one place; each has a test that says when it is no longer needed.

- dense float lists print numbers as hex that reparse as integers, and lose the sign of zero: `ir_printer.IrPrinter`
- every verifier failure dumps the whole module into the exception: `install` removes that
- rewrites drop the location of the op that they replace: `install` hands it on
- visiting all ops takes a call of Python for each step: `ops_inside` reads the fields instead
- most of a build's time is xDSL's own, op by op: `install` puts `xdsl_speed` in place
- the time for a string without its closing quote doubles with each character: `install` puts a linear expression there
"""

from __future__ import annotations

import re
from io import StringIO
from typing import IO, NoReturn

from xdsl.dialects.builtin import ModuleOp, UnknownLoc
from xdsl.ir import IRNode, Operation
from xdsl.pattern_rewriter import PatternRewriter
from xdsl.utils.diagnostic import Diagnostic
from xdsl.utils.mlir_lexer import MLIRLexer

from mlirt.dialects import xdsl_speed
from mlirt.dialects.ir_printer import IrPrinter


def ops_inside(op: Operation) -> list[Operation]:
    """All ops in the regions of an op, those of one block after the other; regions in regions later."""
    found: list[Operation] = []
    waiting = [op]
    while waiting:
        for region in waiting.pop().regions:
            block = region._first_block  # pyright: ignore[reportPrivateUsage]
            while block is not None:
                inner = block._first_op  # pyright: ignore[reportPrivateUsage]
                while inner is not None:
                    found.append(inner)
                    if inner.regions:
                        waiting.append(inner)
                    inner = inner._next_op  # pyright: ignore[reportPrivateUsage]
                block = block._next_block  # pyright: ignore[reportPrivateUsage]
    return found


def print_module(module: Operation, stream: IO[str], *, generic: bool = False, debuginfo: bool = False) -> None:
    """Write the text of a module, with a final newline."""
    IrPrinter(stream=stream, print_generic_format=generic, print_debuginfo=debuginfo).print_op(module)
    stream.write("\n")


def module_text(module: ModuleOp, *, generic: bool = False, debuginfo: bool = False) -> str:
    """The text of a module, with a final newline."""
    stream = StringIO()
    print_module(module, stream, generic=generic, debuginfo=debuginfo)
    return stream.getvalue()


def _raise_without_dump(self: Diagnostic, ir: IRNode, underlying_error: Exception) -> NoReturn:
    raise underlying_error


_insert = PatternRewriter.handle_operation_insertion


def _insert_at_location(self: PatternRewriter, op: Operation) -> None:
    matched = self._current_operation  # pyright: ignore[reportPrivateUsage]
    if matched is not None and isinstance(op.location, UnknownLoc):
        op.location = matched.location
    _insert(self, op)


# The same strings as xDSL's own: no character may be in a part (`++`, `*+`) that is tried again with another length.
_STRING_LITERAL = re.compile(r'"(?:[^"\\\n\v\f]++|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*+"')


def install() -> None:
    """Put the repairs of xDSL's behaviour in place; once is enough, more does no harm."""
    Diagnostic.raise_exception = _raise_without_dump
    PatternRewriter.handle_operation_insertion = _insert_at_location
    xdsl_speed.install()
    MLIRLexer._unescaped_characters_regex = _STRING_LITERAL  # pyright: ignore[reportPrivateUsage]


install()
