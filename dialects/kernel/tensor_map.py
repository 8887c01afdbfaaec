"""The type of a kernel argument that describes a tensor in global memory, so that the device copies boxes by itself."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import ArrayAttr, Float32Type, IntAttr
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition, param_def
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.tensor_types import byte_width

LINE_BYTES = (32, 64, 128)
"""Bytes of the lines of a box that may be swizzled."""
_OPTIONS = ("swizzle", "spatial", "tf32")


@irdl_attr_definition
class TensorMapType(ParametrizedAttribute, TypeAttribute):
    """A map whose copies bring a `box` of elements, lengths outermost first; sizes and steps belong to the launch.

    With `swizzle` bytes (32, 64 or 128, what a line of the box has) the 16-byte pieces of a line lie in an order that
    depends on the line, as matrix units read them without bank conflicts. With `spatial` dimensions the map is walked
    by the window of a convolution: the box is so many pixels of so many channels. With `tf32` (1) copies round each
    float32 to the nearest number with 10 bits of mantissa, ties to even: matrix units cut off the other 13 bits.

    Example: `!kernel.tensor_map<f16, [128, 64], swizzle = 128>`,
    `!kernel.tensor_map<f32, [64, 32], swizzle = 128, spatial = 2, tf32 = 1>`
    """

    name = "kernel.tensor_map"

    element: Attribute = param_def()
    box: ArrayAttr[IntAttr] = param_def()
    swizzle: IntAttr = param_def()
    spatial: IntAttr = param_def()
    tf32: IntAttr = param_def()

    @staticmethod
    def of(
        element: Attribute, box: Sequence[int], swizzle: int = 0, spatial: int = 0, *, tf32: bool = False
    ) -> TensorMapType:
        lengths = ArrayAttr(IntAttr(size) for size in box)
        return TensorMapType(element, lengths, IntAttr(swizzle), IntAttr(spatial), IntAttr(int(tf32)))

    @property
    def rounds(self) -> bool:
        """Whether copies round to TF32."""
        return bool(self.tf32.data)

    @property
    def lengths(self) -> tuple[int, ...]:
        return tuple(length.data for length in self.box)

    @property
    def count(self) -> int:
        """Elements of a copy."""
        return prod(self.lengths)

    @property
    def bytes(self) -> int:
        """Bytes of a copy."""
        return self.count * byte_width(self.element)

    @property
    def rank(self) -> int:
        """Dimensions of the tensor."""
        return self.spatial.data + 2 if self.spatial.data else len(self.box)

    def verify(self) -> None:
        line = self.lengths[-1] * byte_width(self.element) if self.lengths else 0
        if line % 16 or not line:
            raise VerifyException(f"{self.name}: a line of {line} bytes is no multiple of 16")
        if self.swizzle.data and (self.swizzle.data not in LINE_BYTES or self.swizzle.data != line):
            raise VerifyException(f"{self.name}: lines of {line} bytes cannot be swizzled as {self.swizzle.data} bytes")
        if self.spatial.data and len(self.box) != 2:
            raise VerifyException(f"{self.name}: the box of a window has pixels and channels")
        if not 1 <= self.rank <= 5 or any(not 1 <= length <= 1024 for length in self.lengths):
            raise VerifyException(f"{self.name}: a box has up to 5 dimensions of up to 1024 elements")
        if self.tf32.data not in (0, 1) or (self.rounds and self.element != Float32Type()):
            raise VerifyException(f"{self.name}: only f32 is rounded to tf32 (0 or 1), not {self.element}")

    def print_parameters(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_attribute(self.element)
            printer.print_string(f", [{', '.join(map(str, self.lengths))}]")
            for key in _OPTIONS:
                if value := getattr(self, key).data:
                    printer.print_string(f", {key} = {value}")

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        with parser.in_angle_brackets():
            element = parser.parse_type()
            parser.parse_punctuation(",")
            box = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)
            given = dict.fromkeys(_OPTIONS, 0)
            while parser.parse_optional_punctuation(",") is not None:
                key = parser.parse_identifier()
                if key not in given:
                    parser.raise_error(f"expected one of {', '.join(_OPTIONS)}")
                parser.parse_punctuation("=")
                given[key] = parser.parse_integer()
        return [element, ArrayAttr(IntAttr(size) for size in box), *(IntAttr(value) for value in given.values())]
