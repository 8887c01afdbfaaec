"""What is wrong with a text that is no IR: parser errors with better places, and names that were nearly right."""

from __future__ import annotations

import re
from collections.abc import Iterable

from xdsl.context import Context
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation
from xdsl.utils.exceptions import ParseError

from mlirt.errors import InvalidModelError

_UNKNOWN_OP = re.compile(r"Operation (\S+) is not registered")
_UNDEFINED = re.compile(r"values used but not defined: \[(%[\w$.-]+)")
_STRICT = ("trt", "fused", "check")
"""Dialects whose ops have properties for all that they mean; attributes of passes have a dialect's name and a dot."""


def mistake(error: ParseError, text: str, ctx: Context) -> tuple[int, str]:
    """Where a text stops being IR, and why, in one line."""
    start, message = error.span.start, first_line(error.msg)
    if unknown := _UNKNOWN_OP.match(message):
        # The parser has read on by one word, if not by one line.
        name = unknown[1]
        return text.rfind(name, 0, start), f"there is no op {name!r}{_near(name, _ops_like(name, ctx))}"
    if undefined := _UNDEFINED.match(message):
        # It stands at the end of the text, but the mistake is the first use.
        use = re.search(re.escape(undefined[1]) + r"(?![\w$.-])", text)
        return use.start() if use else start, message
    if message == "in block definition":
        ended = not text[start:].strip()
        return start, "the text ends where a '}' is missing" if ended else "expected an operation, a ^block or '}'"
    if "{first_char}" in message:  # xDSL does not fill it in
        return start, f"expected a name behind {text[start : start + 1]!r}"
    if message == "Could not parse entire input!":
        return start, "expected an operation, or the end of the text"
    return start, message


def _ops_like(name: str, ctx: Context) -> list[str]:
    dialect, _, _ = name.partition(".")
    if dialect not in ctx.registered_dialect_names:
        return []
    ctx.get_optional_op(name)  # loads the dialect
    return [op.name for op in ctx.loaded_ops if op.name.startswith(f"{dialect}.")]


def check_property_names(op: Operation) -> None:
    """Raise `InvalidModelError` for a word in an op's braces that means nothing; it would count as an attribute."""
    if not isinstance(op, IRDLOperation) or op.name.partition(".")[0] not in _STRICT:
        return
    definition = op.get_irdl_definition()
    for name in op.attributes:
        if "." not in name and name not in definition.attributes:
            known = sorted(definition.properties)
            words = f"; it has {', '.join(known)}" if known else ""
            raise InvalidModelError(f"{op.name} has no property {name!r}{_near(name, known) or words}")


def _near(name: str, known: Iterable[str]) -> str:
    import difflib  # for mistakes alone: tools start without it

    near = difflib.get_close_matches(name, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else ""


def first_line(message: str) -> str:
    """The first line of an error's text."""
    return message.strip().splitlines()[0] if message.strip() else "syntax error"
