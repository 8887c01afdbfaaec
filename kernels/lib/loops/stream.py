"""Where the elements of one operand lie along the loops of a nest, and how wide they can be accessed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.layout import vector_width
from mlirt.dialects.plan.ops import BufferOp, InputOp, WeightOp
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.lib.loops.loop_nest import Affine
from mlirt.kernels.lib.tactics.lowering import Lowering

_WIDE = 16  # bytes


@dataclass(frozen=True)
class Stream:
    """Elements of one operand: `steps` apart along the loops, from `offset` bytes into a buffer on."""

    buffer: SSAValue
    element: Attribute
    offset: Dim
    steps: tuple[Dim, ...]

    @property
    def width(self) -> int:
        return byte_width(self.element)

    def has_own_memory(self) -> bool:
        """Whether it is known how the buffer is aligned."""
        return isinstance(self.buffer.owner, BufferOp | InputOp | WeightOp)

    def vector(self, axis: int, extents: Sequence[Dim]) -> int:
        """How many elements along a loop one access may move."""
        if self.steps[axis] != 1 or not self.has_own_memory():
            return 1
        numbers = [extents[axis], *(step for k, step in enumerate(self.steps) if k != axis)]
        return max(1, vector_width(_WIDE, self.offset, *(number * self.width for number in numbers)) // self.width)


def stream(one: Affine, lowering: Lowering) -> Stream:
    """Where the elements of an access lie."""
    place, element = lowering.placements[one.value], element_of(one.value.type)
    return Stream(place.buffer, element, place.offset + one.offset * byte_width(element), one.steps)
