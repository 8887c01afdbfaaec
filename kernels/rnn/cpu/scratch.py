"""The memory between the steps of a recurrent layer on a CPU: states and pre-activations of gates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.layout import Layout
from mlirt.dialects.symbolic import Dim, product
from mlirt.dialects.tensor_types import byte_width
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder
from mlirt.kernels.lib.language.words import Strided

if TYPE_CHECKING:
    from mlirt.kernels.lib.tactics.lowering import Lowering


def bytes_of(shape: Sequence[Dim], element: Attribute = f32) -> Dim:
    """The memory of a row-major array."""
    return product(shape) * byte_width(element)


def scratch(k: KernelBuilder, lowering: Lowering, shape: Sequence[Dim], name: str, element: Attribute = f32) -> Strided:
    """A row-major array that a kernel works in."""
    return scratch_in(k, lowering.placements.scratch(bytes_of(shape, element)), shape, name, element)


def scratch_in(
    k: KernelBuilder, buffer: SSAValue, shape: Sequence[Dim], name: str, element: Attribute = f32
) -> Strided:
    """The view that one kernel has of memory that several kernels share."""
    memory = k.memory(buffer, element)
    memory.name_hint = name
    steps = [k.stride(step) for step in Layout.row_major(shape).strides()]
    for step in steps:
        if isinstance(step, SSAValue):
            step.name_hint = f"{name}_step"
    return Strided(memory, steps)
