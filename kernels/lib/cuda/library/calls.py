"""Launches of what a library computes: pointers to tensors, workspace and a bias, then sizes."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Attribute, Operation, SSAValue

from mlirt.dialects.kernel.library_op import LibraryOp
from mlirt.dialects.plan.expression import ExpressionAttr, PointerAttr
from mlirt.dialects.symbolic import Dim, minimum, product
from mlirt.dialects.tensor_types import element_of, numpy_dtype
from mlirt.kernels.lib.builder.placement import Placement
from mlirt.kernels.lib.tactics.lowering import Lowering

CHOICES = ("first", "second")
"""The library's proposals that are tried."""
WORKSPACE_BYTES = 1 << 25


def launch_call(
    kernel: LibraryOp,
    places: Sequence[Placement],
    numbers: Sequence[Dim],
    result: Sequence[Dim],
    op: Operation,
    lowering: Lowering,
) -> None:
    """Launch a library's kernel for `op` on both operands, the result and perhaps a bias; none for an empty result."""
    workspace = Placement(lowering.placements.scratch(WORKSPACE_BYTES), 0, ())
    given = [*places[:3], workspace, *places[3:]]
    buffers = list(dict.fromkeys(place.buffer for place in given))
    pointers = [PointerAttr.of(buffers.index(place.buffer), place.offset, place.part) for place in given]
    launches = product(minimum(size, 1) for size in result)
    sizes = [ExpressionAttr.of(number) for number in numbers]
    lowering.launch(kernel, buffers, [*pointers, *sizes], op, [launches, 1, 1])


def rounded_bias(bias: SSAValue, element: Attribute, lowering: Lowering) -> Placement:
    """A bias in memory, with elements of the result's type where it is known."""
    array = lowering.constant_array(bias)
    if array is None or element_of(bias.type) == element:
        return lowering.placements[bias]
    return Placement(lowering.placements.new_weight(array.astype(numpy_dtype(element)), "bias"), 0, ())
