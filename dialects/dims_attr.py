"""The encoding of a tensor type: a name or an expression for each dimension, and how the tensor lies in memory."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ArrayAttr, IntAttr, NoneAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_text import parse


@irdl_attr_definition
class DimsAttr(ParametrizedAttribute):
    """Dimensions as text, for example `#trt.dims<["n", "3", "2*h + 1"]>`.

    How the tensor lies in memory: `order` lists the dimensions from the outermost to the innermost (row-major where it
    is missing: `[0, 2, 3, 1]` are images with their channels last), and `row` is the number of elements from one
    innermost row to the next where that is more than its length. On a blocked tensor `channels` is the logical channel
    count of the innermost blocks and `halo` the number of cells that border the two spatial dimensions on each side:
    all their bytes are `fill`, zero where it is missing.

    C1: `order` has every dimension once. C2: `row` is no less than the length of the innermost dimension. C3: blocked
    tensors and halos are row-major. C4: `fill` is a byte, and only for a halo.
    """

    name = "trt.dims"

    expressions: ArrayAttr[StringAttr] = param_def()
    channels: StringAttr | NoneAttr = param_def()
    halo: ArrayAttr[IntAttr] = param_def()
    order: ArrayAttr[IntAttr] = param_def()
    row: IntAttr = param_def()
    fill: IntAttr = param_def()

    @staticmethod
    def of(
        dims: Sequence[Dim],
        channels: Dim | None = None,
        halo: Sequence[int] = (),
        order: Sequence[int] = (),
        row: int = 0,
        fill: int = 0,
    ) -> DimsAttr:
        return DimsAttr(
            ArrayAttr(StringAttr(str(dim)) for dim in dims),
            NoneAttr() if channels is None else StringAttr(str(channels)),
            _numbers(halo),
            _numbers(order),
            IntAttr(row),
            IntAttr(fill),
        )

    def dims(self) -> tuple[Dim, ...]:
        return tuple(parse(text.data) for text in self.expressions)

    def channel_count(self) -> Dim | None:
        return None if isinstance(self.channels, NoneAttr) else parse(self.channels.data)

    def halo_cells(self) -> tuple[int, ...]:
        return tuple(cells.data for cells in self.halo)

    def memory_order(self) -> tuple[int, ...]:
        """The dimensions from the outermost to the innermost in memory."""
        return tuple(axis.data for axis in self.order) or tuple(range(len(self.expressions)))

    def verify(self) -> None:
        for text in self.expressions:
            try:
                parse(text.data)
            except ValueError as error:
                raise VerifyException(f"trt.dims: {error}") from error
        order = self.memory_order()
        if sorted(order) != list(range(len(self.expressions))):
            raise VerifyException(
                f"trt.dims: C1: order {list(order)} is not that of {len(self.expressions)} dimensions"
            )
        inner = self.dims()[order[-1]] if order else 1
        if self.row.data and (not isinstance(inner, int) or self.row.data < inner):
            raise VerifyException(f"trt.dims: C2: rows of {self.row.data} elements cannot hold {inner}")
        if (self.order.data or self.row.data) and (self.halo.data or not isinstance(self.channels, NoneAttr)):
            raise VerifyException("trt.dims: C3: a tensor with blocks or a halo has no other order and no longer rows")

        if not 0 <= self.fill.data <= 255 or (self.fill.data and not self.halo.data):
            raise VerifyException(f"trt.dims: C4: {self.fill.data} is no byte that fills a halo")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.expressions)
            if not isinstance(self.channels, NoneAttr):
                printer.print_string(", channels = ")
                printer.print_attribute(self.channels)
            for name, numbers in (("halo", self.halo), ("order", self.order)):
                if numbers.data:
                    printer.print_string(f", {name} = [{', '.join(str(number.data) for number in numbers)}]")
            for name, number in (("row", self.row), ("fill", self.fill)):
                if number.data:
                    printer.print_string(f", {name} = {number.data}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            texts = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_str_literal)
            channels: Attribute = NoneAttr()
            numbers: dict[str, list[int]] = {"halo": [], "order": []}
            single = {"row": 0, "fill": 0}
            while parser.parse_optional_punctuation(",") is not None:
                name = parser.parse_identifier()
                parser.parse_punctuation("=")
                if name == "channels":
                    channels = StringAttr(parser.parse_str_literal())
                elif name in single:
                    single[name] = parser.parse_integer()
                elif name in numbers:
                    numbers[name] = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
                else:
                    parser.raise_error(f"trt.dims has channels, halo, order, row and fill, not {name}")
        halo, order = _numbers(numbers["halo"]), _numbers(numbers["order"])
        row, fill = IntAttr(single["row"]), IntAttr(single["fill"])
        return [ArrayAttr(StringAttr(text) for text in texts), channels, halo, order, row, fill]


def _numbers(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    return ArrayAttr(IntAttr(value) for value in values)
