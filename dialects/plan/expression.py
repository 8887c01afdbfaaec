"""Sizes and kernel arguments that the host computes from the shapes of a run."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

from xdsl.dialects.builtin import AnyFloat, ArrayAttr, FloatAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.plan.tensor_map import TensorMapAttr
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_text import parse


@irdl_attr_definition
class BufferType(ParametrizedAttribute, TypeAttribute):
    """A piece of memory."""

    name = "plan.memory"


@irdl_attr_definition
class ExpressionAttr(ParametrizedAttribute):
    """A whole number over the network's symbols, for example `#plan.expression<"4*n*h">`."""

    name = "plan.expression"

    text: StringAttr = param_def()

    @staticmethod
    def of(value: Dim) -> ExpressionAttr:
        return _of_text(str(value))

    def value(self) -> Dim:
        return parse(self.text.data)

    def verify(self) -> None:
        _check(self.name, self.text)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.text)

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            return [StringAttr(parser.parse_str_literal())]


@lru_cache(maxsize=1 << 14)
def _of_text(text: str) -> ExpressionAttr:
    return ExpressionAttr(StringAttr(text))


@irdl_attr_definition
class PointerAttr(ParametrizedAttribute):
    """A kernel argument that points into a buffer of the launch: `#plan.pointer<0, "4*n">` is operand 0 plus 4 n
    bytes.

    With `part` the kernel touches that part of the buffer alone; parts with different numbers have no byte in common,
    and `[0, 1]` is a part of `[0]`.

    Example: `#plan.pointer<0, "64", part = [1]>`
    """

    name = "plan.pointer"

    operand: IntAttr = param_def()
    offset: StringAttr = param_def()
    part: ArrayAttr[IntAttr] = param_def()

    @staticmethod
    def of(operand: int, offset: Dim, part: Sequence[int] = ()) -> PointerAttr:
        return PointerAttr(IntAttr(operand), StringAttr(str(offset)), ArrayAttr(IntAttr(number) for number in part))

    def part_numbers(self) -> list[int]:
        return [number.data for number in self.part]

    def value(self) -> Dim:
        return parse(self.offset.data)

    def verify(self) -> None:
        _check(self.name, self.offset)

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.operand.data}, ")
            printer.print_attribute(self.offset)
            if self.part:
                printer.print_string(f", part = {self.part_numbers()}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            operand = parser.parse_integer()
            parser.parse_punctuation(",")
            offset, part = parser.parse_str_literal(), list[int]()
            if parser.parse_optional_punctuation(",") is not None:
                parser.parse_keyword("part")
                parser.parse_punctuation("=")
                part = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            return [IntAttr(operand), StringAttr(offset), ArrayAttr(IntAttr(number) for number in part)]


# A pointer into an operand, a map of one, a whole number, or a constant.
Argument: TypeAlias = "PointerAttr | TensorMapAttr | ExpressionAttr | FloatAttr[AnyFloat]"


def _check(name: str, text: StringAttr) -> None:
    try:
        parse(text.data)
    except ValueError as error:
        raise VerifyException(f"{name}: {error}") from error
