"""How many neighbouring elements of a tensor can be accessed at once."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import SSAValue

from mlirt.dialects.layout import vector_width
from mlirt.dialects.symbolic import Dim
from mlirt.dialects.tensor_types import byte_width, element_of
from mlirt.kernels.lib.tactics.lowering import Lowering


def widest_access(value: SSAValue, other_steps: Sequence[Dim], lowering: Lowering, most: int = 16) -> int:
    """Elements of the widest access along a contiguous dimension: at most 16 bytes, always so aligned.

    `other_steps` are the strides of the other dimensions that are walked along.
    """
    place, size = lowering.placements[value], byte_width(element_of(value.type))
    return max(1, vector_width(most, place.offset, *(step * size for step in other_steps)) // size)


def is_multiple(length: Dim, of: int) -> bool:
    """Whether a length is known to be a multiple of a number, whatever its symbols stand for."""
    return length % of == 0 if isinstance(length, int) else length // of * of == length
