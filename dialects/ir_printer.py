"""xDSL's printer, with floats that read back as what they were, and without writing what is equal a second time.

A network has few different types, attributes and layers: the text of each attribute is made once, and so is that of
ops that are equal but for the names of their values (`_Template`). The text is the same as without that, byte for byte.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import StringIO
from typing import NamedTuple, cast

from xdsl.dialects.builtin import AnyDenseElement, AnyFloat, DenseIntOrFPElementsAttr, Float32Type, Float64Type
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.printer import Printer

_MAX_LIST_LENGTH = 100  # xDSL prints longer ones as raw bytes, which is exact
_PRINTABLE = re.compile(rb"[ !#-\[\]-~]*")  # a string of these is written as it is

_DECLARATIVE = "print_with_format"  # what xDSL calls the `print` that it makes of an assembly format
_F32 = struct.Struct("<f")

_Key = tuple[object, ...]


class _Template(NamedTuple):
    """The text of an op behind its results: operand `slots[i]` is named between `pieces[i]` and the next."""

    pieces: Sequence[str]
    slots: Sequence[int]


@dataclass(eq=False, repr=False)
class IrPrinter(Printer):
    """xDSL's printer, with floats that read back as what they were."""

    _texts: dict[tuple[int, bool], tuple[Attribute, str]] = field(
        default_factory=dict[tuple[int, bool], tuple[Attribute, str]], init=False
    )
    """Of attributes, by their identity (equal ones may hold zeros of another sign) and whether they are part of a
    location, in which they are written in a shorter form.
    """
    _templates: dict[_Key, _Template | None] = field(default_factory=dict[_Key, "_Template | None"], init=False)
    """Of ops; None where an op has several lines, whose indent counts."""
    _named: list[tuple[str, SSAValue]] | None = field(default=None, init=False)
    """While a template is made: the values that it names, and the text in front of each."""

    def print_string(self, text: str, *, indent: int | None = None) -> None:
        if self.stream is None or "\n" in text:
            super().print_string(text, indent=indent)
        else:
            self._current_column += len(text)
            self.stream.write(text)

    def print_attribute(self, attribute: Attribute) -> None:
        self.print_string(self._text(attribute), indent=0)

    def _text(self, attribute: Attribute) -> str:
        key = id(attribute), self.printing_location
        known = self._texts.get(key)
        if known is not None:
            return known[1]
        with self._apart() as stream:
            self._print_new_attribute(attribute)
        text = stream.getvalue()
        if "\n" not in text:  # else its indent counts
            self._texts[key] = attribute, text
        return text

    @contextmanager
    def _apart(self) -> Generator[StringIO]:
        """Print into a text of its own."""
        column, outer = self._current_column, self.stream
        self.stream = stream = StringIO()
        try:
            yield stream
        finally:
            self._current_column, self.stream = column, outer

    def _print_new_attribute(self, attribute: Attribute) -> None:
        if not isinstance(attribute, DenseIntOrFPElementsAttr):
            super().print_attribute(attribute)
            return
        dense = cast(DenseIntOrFPElementsAttr[AnyDenseElement], attribute)
        if _needs_raw_bytes(dense):
            self.print_string(f'dense<"0x{dense.data.data.hex().upper()}"> : ')
            self.print_attribute(dense.get_type())
        else:
            super().print_attribute(dense)

    def print_float(self, value: float, type: AnyFloat) -> None:
        text = _digits(value, type)
        if text is None:
            stream = StringIO()
            Printer(stream=stream).print_float(value, type)
            text = stream.getvalue()
            if text.startswith("0x") and math.isfinite(value):
                # A whole number with many digits comes as the hex of its bits, which a dense list reads as an integer.
                text = f"{value:.1f}"
        self.print_string(text)

    def print_bytes_literal(self, bytestring: bytes) -> None:
        if _PRINTABLE.fullmatch(bytestring):
            self.print_string(f'"{bytestring.decode("ascii")}"')
        else:
            super().print_bytes_literal(bytestring)

    def print_ssa_value(self, value: SSAValue) -> str:
        if self._named is None:
            return super().print_ssa_value(value)
        stream = cast(StringIO, self.stream)
        self._named.append((stream.getvalue(), value))
        stream.seek(0)
        stream.truncate()
        return ""

    def print_op(self, op: Operation) -> None:
        template = self._template(op) if self._may_repeat(op) else None
        if template is None:
            super().print_op(op)
            return
        self._print_results(op)
        for piece, slot in zip(template.pieces, template.slots):
            self.print_string(piece)
            self.print_ssa_value(op.operands[slot])
        self.print_string(template.pieces[-1])
        if self.print_debuginfo:
            self.print_string(" ")
            self.print_attribute(op.location)

    def _may_repeat(self, op: Operation) -> bool:
        """Whether there may be a template for the op: the text follows from attributes, types and names of operands."""
        if not op.operands or op.regions or op.successors or self.print_generic_format or self._named is not None:
            return False
        return type(op).print.__name__ == _DECLARATIVE and op not in self.diagnostic.op_messages

    def _template(self, op: Operation) -> _Template | None:
        """That of all ops with its attributes, types, and operands that are the same value."""
        operands = op.operands
        text = self._text
        key = (
            type(op),
            *[part for name, value in op.properties.items() for part in (name, text(value))],
            None,
            *[part for name, value in op.attributes.items() for part in (name, text(value))],
            None,
            *[text(operand.type) for operand in operands],
            None,
            *[text(result.type) for result in op.results],
            *([operands.index(operand) for operand in operands] if len(set(operands)) < len(operands) else ()),
        )
        if key not in self._templates:
            self._templates[key] = self._made_template(op)
        return self._templates[key]

    def _made_template(self, op: Operation) -> _Template | None:
        self._named = []
        try:
            with self._apart() as stream:
                self.print_string(op.name)
                op.print(self)
            named = self._named
        finally:
            self._named = None
        pieces = [*(text for text, _ in named), stream.getvalue()]
        if any("\n" in piece for piece in pieces):
            return None
        return _Template(pieces, [op.operands.index(value) for _, value in named])


def _digits(value: float, type: AnyFloat) -> str | None:
    """xDSL's text for a number of 32 or 64 bits that needs a point; None for others."""
    short = f"{value:.5e}"
    mantissa, _, exponent = short.partition("e")
    if isinstance(type, Float32Type):
        digits = 9
        try:
            (rounded,) = _F32.unpack(_F32.pack(float(short)))
        except OverflowError:
            return None
    elif isinstance(type, Float64Type):
        digits, rounded = 17, float(short)
    else:
        return None
    if rounded == value and math.isfinite(value):
        return f"{mantissa}0e{exponent}"
    text = f"{value:.{digits}g}"
    return text if "." in text else None


def _needs_raw_bytes(attribute: DenseIntOrFPElementsAttr[AnyDenseElement]) -> bool:
    if not isinstance(attribute.get_element_type(), AnyFloat) or not 0 < len(attribute) <= _MAX_LIST_LENGTH:
        return False
    values = [value for value in attribute.get_values() if isinstance(value, float)]
    signs_of_zero = {math.copysign(1.0, value) for value in values if value == 0.0}
    return len(signs_of_zero) > 1 or not all(map(math.isfinite, values))
