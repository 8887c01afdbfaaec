"""How the taps of a window are combined, in which type, and which lines of the input a strip of rows needs."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, Signedness, f16, i8, i32
from xdsl.ir import Attribute

from mlirt.dialects.combine import ReduceKind, identity
from mlirt.dialects.fused.epilogue import accumulator_type
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.tensor_types import element_name, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language import Value, builder, kernel, value_of
from mlirt.kernels.lib.language.words import narrowed, widened
from mlirt.kernels.lib.loops.block_lanes import number
from mlirt.kernels.lib.nests.taps import Axis

_UI8 = IntegerType(8, Signedness.UNSIGNED)


class Combination:
    """The sum or the largest of elements of a pooling layer's input, in the type `accumulator_type`.

    `start` is that of no elements; `outside` is an element that changes nothing.
    """

    def __init__(self, k: KernelBuilder, op: WindowOp) -> None:
        self.is_max = op.kind.data is WindowKind.MAX
        self.element, self.accumulator = element_of(op.input.type), accumulator_type(op.epilogue)
        # The largest of some halves is one of them; bytes are compared in whole registers, where they need no care.
        compared: dict[Attribute, Attribute] = {f16: f16, i8: i32, _UI8: i32}
        self.accumulator_type = compared.get(self.element, self.accumulator) if self.is_max else self.accumulator
        kind = ReduceKind.MAX if self.is_max else ReduceKind.ADD
        start, outside = (identity(kind, element_name(type_)) for type_ in (self.accumulator_type, self.element))
        self.start = value_of(number(k, start, self.accumulator_type))
        self.outside = value_of(number(k, outside, self.element))

    @kernel
    def of(self, *parts: Value) -> Value:
        """Parts of a window as one."""
        s = builder().scalars(self.accumulator_type)
        combined, (found, *others) = s.max if self.is_max else s.add, parts
        for part in others:
            found = builder().typed(combined(builder().ready(found), builder().ready(part)), self.accumulator_type)
        return found

    @kernel
    def part(self, element: Value) -> Value:
        """An element of the input as a part of a window."""
        return self._as(element, self.accumulator_type)

    @kernel
    def total(self, part: Value) -> Value:
        """What a whole window is combined to, as the epilogue takes it."""
        return self._as(part, self.accumulator)

    @kernel
    def _as(self, number: Value, type_: Attribute) -> Value:
        return narrowed(widened(number, type_), type_, type_)


def strip_lines(axis: Axis, rows: int) -> list[int]:
    """The lines of the input that a strip of some rows of the result reads, from its first one on."""
    assert isinstance(axis.size, int)
    return sorted({row * axis.stride + tap * axis.dilation for row in range(rows) for tap in range(axis.size)})


def has_nearest(axis: Axis) -> bool:
    """Whether the cell of the input that is nearest to any cell of a window belongs to the window."""
    sizes = (axis.size, axis.pre, axis.length, axis.output)
    if axis.dilation != 1 or not all(isinstance(size, int) for size in sizes):
        return False
    size, pre, length, output = (int(str(size)) for size in sizes)
    return 0 <= pre < size and 0 < length and (output - 1) * axis.stride - pre < length


__all__ = ["Combination", "has_nearest", "strip_lines"]
