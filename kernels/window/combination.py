"""How the taps of a window are combined on a GPU, in which type, and which lines of the input a strip of rows needs."""

from __future__ import annotations

from xdsl.dialects.builtin import IntegerType, Signedness, f16, i8, i32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.reduction import ReductionKind, neutral
from mlirt.dialects.fused.window import WindowKind, WindowOp
from mlirt.dialects.tensor_types import element_name, element_of
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.loops.block_lanes import number
from mlirt.kernels.lib.loops.reduction_nest import accumulator_of
from mlirt.kernels.lib.loops.taps import Axis

_UI8 = IntegerType(8, Signedness.UNSIGNED)


class Combination:
    """The sum or the largest of elements of a pooling layer's input, in the type `accumulator_type`.

    `start` is that of no elements; `outside` is an element that changes nothing.
    """

    def __init__(self, k: KernelBuilder, op: WindowOp) -> None:
        self.k, self.is_max = k, op.kind.data is WindowKind.MAX
        self.element, self.accumulator = element_of(op.input.type), accumulator_of(op.epilogue)
        # The largest of some halves is one of them; bytes are compared in whole registers, where they need no care.
        compared: dict[Attribute, Attribute] = {f16: f16, i8: i32, _UI8: i32}
        self.accumulator_type = compared.get(self.element, self.accumulator) if self.is_max else self.accumulator
        kind = ReductionKind.MAX if self.is_max else ReductionKind.ADD
        self.start = number(k, neutral(kind, element_name(self.accumulator_type)), self.accumulator_type)
        self.outside = number(k, neutral(kind, element_name(self.element)), self.element)

    def of(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Two parts of a window as one."""
        k = self.k
        s = k.scalars(self.accumulator_type)
        combined = s.max if self.is_max else s.add
        return k.typed(combined(k.ready(a), k.ready(b)), self.accumulator_type)

    def part(self, element: SSAValue) -> SSAValue:
        """An element of the input as a part of a window."""
        k = self.k
        return k.typed(k.scalars(self.accumulator_type).cast(k.ready(element), self.element), self.accumulator_type)

    def total(self, part: SSAValue) -> SSAValue:
        """What a whole window is combined to, as the epilogue takes it."""
        k = self.k
        return k.typed(k.scalars(self.accumulator).cast(k.ready(part), self.accumulator_type), self.accumulator)


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
