"""How large sums of int8 products can be, given the weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp
from mlirt.dialects.tensor_types import element_of, is_float, is_unsigned
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore
from mlirt.kernels.lib.value_ranges.range_analysis import Range, type_range

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def accumulator_range(op: ConvolutionOp | MatmulOp, store: WeightStore) -> Range | None:
    """The range of the accumulator of a contraction of integers; None for others, or where it is not known."""
    left, right = op.operands[0], op.operands[1]
    element = element_of(left.type)
    pixels = None if is_float(element) else type_range(element, unsigned=is_unsigned(element))
    owner = right.owner
    if pixels is None or is_float(element_of(right.type)) or not isinstance(owner, ConstantOp):
        return None
    rows = _rows(op, owner.array(store))
    if rows is None or not rows.size:
        return None
    above, below = rows.clip(0, None).sum(-1), rows.clip(None, 0).sum(-1)
    low, high = above * pixels.low + below * pixels.high, above * pixels.high + below * pixels.low
    return Range(min(0.0, float(low.min())), max(0.0, float(high.max())))


def _rows(op: ConvolutionOp | MatmulOp, weights: Array) -> Array | None:
    """The factors of each sum in a row; of a deconvolution more than these are added up."""
    import numpy as np

    wide = weights.astype(np.float64)
    if isinstance(op, MatmulOp):
        return wide if op.transpose_rhs.value.data else wide.swapaxes(-1, -2)
    return None if op.transposed.value.data else wide.reshape(len(wide), -1)


__all__ = ["accumulator_range"]
