"""The memory between the steps of a recurrent layer on a CPU: states and pre-activations of gates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.kernel.core import LoadOp, StoreOp
from mlirt.dialects.layout import Layout
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder, Stride
from mlirt.kernels.lib.language import Index, Value

if TYPE_CHECKING:
    from mlirt.kernels.lib.tactics.lowering import Lowering


def bytes_of(shape: Sequence[Dim], element: Attribute = f32) -> Dim:
    """The memory of a row-major array."""
    return product(shape) * byte_width(element)


@dataclass(frozen=True)
class Scratch:
    """A row-major array that kernels work in."""

    k: KernelBuilder
    memory: SSAValue
    steps: tuple[Stride, ...]

    @staticmethod
    def of(k: KernelBuilder, lowering: Lowering, shape: Sequence[Dim], name: str, element: Attribute = f32) -> Scratch:
        return Scratch.at_buffer(k, lowering.placements.scratch(bytes_of(shape, element)), shape, name, element)

    @staticmethod
    def at_buffer(
        k: KernelBuilder, buffer: SSAValue, shape: Sequence[Dim], name: str, element: Attribute = f32
    ) -> Scratch:
        """The view that one kernel has of memory that several kernels share."""
        memory = k.memory(buffer, element)
        memory.name_hint = name
        steps = [k.stride(step) for step in Layout.row_major(shape).strides()]
        for step in steps:
            if isinstance(step, SSAValue):
                step.name_hint = f"{name}_step"
        return Scratch(k, memory, tuple(steps))

    def __getitem__(self, indices: Index | tuple[Index, ...]) -> Value:
        return self.k.value(LoadOp(self.memory, self._places(indices), self.steps))

    def __setitem__(self, indices: Index | tuple[Index, ...], value: Value) -> None:
        self.k.insert(StoreOp(value, self.memory, self._places(indices), self.steps))

    def _places(self, indices: Index | tuple[Index, ...]) -> list[Value]:
        return [self.k.index(index) for index in (indices if isinstance(indices, tuple) else (indices,))]

    def at(self, indices: Sequence[SSAValue]) -> Value:
        """The number of an element."""
        total = self.k.constant(0)
        for index, step in zip(indices, self.steps, strict=True):
            total = self.k.add(total, self.k.mul(index, step))
        return total
