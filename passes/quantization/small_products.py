"""The products of a network that would gain nothing in int8: little work, in sums too short for the instructions."""

from __future__ import annotations

from xdsl.ir import Block, Operation

from mlirt.dialects.symbolic import product
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims
from mlirt.dialects.typical_sizes import typical, typical_values
from mlirt.passes.quantization.integer_operands import weight_axis

INSTRUCTION = 32
"""Bytes that the matrix units of a GPU multiply for one sum at a time."""
SHARE = 1 / 32
"""Of all products of the network."""


def small_products(block: Block) -> set[Operation]:
    """Layers with sums of fewer than 32 products each and less than a 32nd of all products.

    They are the first ones of networks for images: a few channels of many pixels. Rounding costs them most, as all that
    follows is made of what they compute, and as short sums hardly even out errors.
    """
    sizes = typical_values(block)
    work: dict[TensorOp, tuple[int, int]] = {}
    for op in block.ops:
        axis = weight_axis(op)
        if axis is not None and isinstance(op, TensorOp):
            weights = dims(op.operands[1].type)
            length = typical(product(weights), sizes) // max(typical(weights[axis], sizes), 1)
            work[op] = length, length * typical(product(dims(op.results[0].type)), sizes)
    total = sum(products for _, products in work.values())
    return {op for op, (length, products) in work.items() if length < INSTRUCTION and products < SHARE * total}
