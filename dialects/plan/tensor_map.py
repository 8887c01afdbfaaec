"""A kernel argument that describes a tensor in memory, from which the device copies boxes by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.dialects.builtin import ArrayAttr, IntAttr, StringAttr
from xdsl.ir import Attribute, ParametrizedAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.symbolic import Dim
from mlirt.dialects.symbolic_text import parse

T = TypeVar("T")


@dataclass(frozen=True)
class Walk:
    """How a window slides over the spatial dimensions of a map: from `lower` to the size plus `upper`, by `stride`."""

    lower: tuple[int, ...]
    upper: tuple[int, ...]
    stride: tuple[int, ...]


@irdl_attr_definition
class TensorMapAttr(ParametrizedAttribute):
    """A map of a tensor that starts `offset` bytes into a buffer of the launch, dimensions outermost first.

    `sizes` and `steps` (strides in elements, the last one 1) may be expressions, `box` is what one copy brings: one
    length per dimension. Lines of `swizzle` bytes are swizzled in shared memory (0: none). With `lower`, `upper` and
    `stride` the map is walked by a window; then `box` has the numbers of pixels and channels. With `tf32` (1) copies
    round float32 to the nearest number with 10 bits of mantissa.

    Example: `#plan.tensor_map<0, "0", f16, sizes = ["n", "64"], steps = ["64", "1"], box = [128, 64], swizzle = 128>`
    """

    name = "plan.tensor_map"

    operand: IntAttr = param_def()
    offset: StringAttr = param_def()
    element: Attribute = param_def()
    sizes: ArrayAttr[StringAttr] = param_def()
    steps: ArrayAttr[StringAttr] = param_def()
    box: ArrayAttr[IntAttr] = param_def()
    swizzle: IntAttr = param_def()
    tf32: IntAttr = param_def()
    lower: ArrayAttr[IntAttr] = param_def()
    upper: ArrayAttr[IntAttr] = param_def()
    stride: ArrayAttr[IntAttr] = param_def()

    @staticmethod
    def of(
        operand: int,
        offset: Dim,
        element: Attribute,
        sizes: Sequence[Dim],
        steps: Sequence[Dim],
        box: Sequence[int],
        swizzle: int,
        walk: Walk | None = None,
        *,
        tf32: bool = False,
    ) -> TensorMapAttr:
        walked = walk or Walk((), (), ())
        return TensorMapAttr(
            IntAttr(operand),
            StringAttr(str(offset)),
            element,
            _texts(sizes),
            _texts(steps),
            _integers(box),
            IntAttr(swizzle),
            IntAttr(int(tf32)),
            _integers(walked.lower),
            _integers(walked.upper),
            _integers(walked.stride),
        )

    def value(self) -> Dim:
        """The offset in bytes."""
        return parse(self.offset.data)

    def at(self, offset: Dim) -> TensorMapAttr:
        """The same map of a tensor that starts elsewhere in the buffer."""
        return TensorMapAttr.new(
            [one if one is not self.offset else StringAttr(str(offset)) for one in self.parameters]
        )

    def size_list(self) -> list[Dim]:
        return [parse(text.data) for text in self.sizes]

    def step_list(self) -> list[Dim]:
        return [parse(text.data) for text in self.steps]

    def walk(self) -> Walk | None:
        """How a window slides over it; None for a map that boxes are copied from."""
        if not self.stride.data:
            return None
        lower, upper, stride = (tuple(k.data for k in one) for one in (self.lower, self.upper, self.stride))
        return Walk(lower, upper, stride)

    def verify(self) -> None:
        for text in (self.offset, *self.sizes, *self.steps):
            try:
                parse(text.data)
            except ValueError as error:
                raise VerifyException(f"{self.name}: {error}") from error
        if len(self.sizes) != len(self.steps):
            raise VerifyException(f"{self.name}: {len(self.sizes)} sizes and {len(self.steps)} steps")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(f"{self.operand.data}, ")
            printer.print_attribute(self.offset)
            printer.print_string(", ")
            printer.print_attribute(self.element)
            for key in ("sizes", "steps"):
                printer.print_string(f", {key} = ")
                printer.print_attribute(getattr(self, key))
            printer.print_string(f", box = {_list_text(self.box)}, swizzle = {self.swizzle.data}")
            if self.tf32.data:
                printer.print_string(f", tf32 = {self.tf32.data}")
            if self.stride.data:
                for key in ("lower", "upper", "stride"):
                    printer.print_string(f", {key} = {_list_text(getattr(self, key))}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            operand = parser.parse_integer()
            parser.parse_punctuation(",")
            offset = parser.parse_str_literal()
            parser.parse_punctuation(",")
            element = parser.parse_type()
            sizes, steps = (_texts(_list(parser, key, parser.parse_str_literal)) for key in ("sizes", "steps"))
            box = _integers(_list(parser, "box", parser.parse_integer))
            swizzle = _after(parser, "swizzle", parser.parse_integer)
            walk: list[ArrayAttr[IntAttr]] = [_integers([])] * 3
            tf32, goes_on = 0, parser.parse_optional_punctuation(",") is not None
            if goes_on and parser.parse_optional_keyword("tf32") is not None:
                parser.parse_punctuation("=")
                tf32, goes_on = parser.parse_integer(), parser.parse_optional_punctuation(",") is not None
            if goes_on:
                lower = _list(parser, "lower", parser.parse_integer, comma=False)
                rest = [_list(parser, key, parser.parse_integer) for key in ("upper", "stride")]
                walk = [_integers(one) for one in (lower, *rest)]
            flags = [IntAttr(swizzle), IntAttr(tf32)]
            return [IntAttr(operand), StringAttr(offset), element, sizes, steps, box, *flags, *walk]


def _texts(values: Sequence[Dim | str]) -> ArrayAttr[StringAttr]:
    return ArrayAttr(StringAttr(str(value)) for value in values)


def _integers(values: Sequence[int]) -> ArrayAttr[IntAttr]:
    return ArrayAttr(IntAttr(value) for value in values)


def _list_text(values: ArrayAttr[IntAttr]) -> str:
    return f"[{', '.join(str(value.data) for value in values)}]"


def _after(parser: AttrParser, key: str, item: Callable[[], T], *, comma: bool = True) -> T:
    if comma:
        parser.parse_punctuation(",")
    parser.parse_keyword(key)
    parser.parse_punctuation("=")
    return item()


def _list(parser: AttrParser, key: str, item: Callable[[], T], *, comma: bool = True) -> list[T]:
    def items() -> list[T]:
        return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, item)

    return _after(parser, key, items, comma=comma)
