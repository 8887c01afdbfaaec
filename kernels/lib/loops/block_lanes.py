"""Blocked tensors end in lanes of which the last block may have too many: those are written as zero."""

from __future__ import annotations

from xdsl.ir import Attribute, SSAValue

from mlirt.dialects.fused.scalar_builder import scalar_type
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import channels, dims, is_unsigned, rank
from mlirt.kernels.lib.builder.kernel_builder import KernelBuilder


def surplus(of: Attribute) -> Dim | None:
    """The channel count of a blocked tensor whose last block may be partly unused; None where there is nothing to
    mask.
    """
    count = channels(of)
    if count is None:
        return None
    lanes = dims(of)[-1]
    return None if isinstance(count, int) and isinstance(lanes, int) and count % lanes == 0 else count


def lane_axes(of: Attribute) -> set[int]:
    """The dimensions of a blocked tensor that together name the channel, where lanes have to be masked."""
    return set() if surplus(of) is None else {1, rank(of) - 1}


def zero(k: KernelBuilder, element: Attribute) -> SSAValue:
    """The number zero of a tensor's element type."""
    return number(k, 0, element)


def number(k: KernelBuilder, value: float, element: Attribute) -> SSAValue:
    """A number of a tensor's element type; unsigned ones are made from signless ones."""
    if not is_unsigned(element):
        return k.constant(value, element)
    return k.typed(k.constant(value, scalar_type(element)), element)
