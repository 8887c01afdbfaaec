"""The encoding of a tensor type: a name or an expression for each dimension, and how the tensor lies in memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.symbolic import Dim, parse


@irdl_attr_definition
class DimsAttr(ParametrizedAttribute):
    """Dimensions as text, for example `#trt.dims<["n", "3", "2*h + 1"]>`.

    On a physical (blocked) tensor `channels` is the logical channel count of the innermost blocks and `halo` the
    number of zero cells that border the two spatial dimensions on each side in memory.
    """

    name = "trt.dims"

    expressions: ArrayAttr[StringAttr] = param_def()
    channels: StringAttr | NoneAttr = param_def()
    halo: ArrayAttr[IntAttr] = param_def()

    @staticmethod
    def of(dims: Sequence[Dim], channels: Dim | None = None, halo: Sequence[int] = ()) -> DimsAttr:
        return DimsAttr(
            ArrayAttr(StringAttr(str(dim)) for dim in dims),
            NoneAttr() if channels is None else StringAttr(str(channels)),
            ArrayAttr(IntAttr(cells) for cells in halo),
        )

    def dims(self) -> tuple[Dim, ...]:
        return tuple(parse(text.data) for text in self.expressions)

    def channel_count(self) -> Dim | None:
        return None if isinstance(self.channels, NoneAttr) else parse(self.channels.data)

    def halo_cells(self) -> tuple[int, ...]:
        return tuple(cells.data for cells in self.halo)

    def verify(self) -> None:
        for text in self.expressions:
            try:
                parse(text.data)
            except ValueError as error:
                raise VerifyException(f"trt.dims: {error}") from error

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.expressions)
            if not isinstance(self.channels, NoneAttr):
                printer.print_string(", channels = ")
                printer.print_attribute(self.channels)
            if self.halo.data:
                printer.print_string(", halo = [")
                printer.print_list(self.halo, lambda cells: printer.print_string(str(cells.data)))
                printer.print_string("]")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            texts = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
            channels: Attribute = NoneAttr()
            halo: list[int] = []
            while parser.parse_optional_punctuation(",") is not None:
                if parser.parse_optional_keyword("channels") is not None:
                    parser.parse_punctuation("=")
                    channels = StringAttr(parser.parse_str_literal())
                else:
                    parser.parse_keyword("halo")
                    parser.parse_punctuation("=")
                    halo = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
        return [ArrayAttr(StringAttr(t) for t in texts), channels, ArrayAttr(IntAttr(h) for h in halo)]
