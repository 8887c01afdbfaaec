"""What the rewritings of convolutions have in common: which ones they take, and the weights that they give them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.fused.contraction import ConvolutionOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.passes.rules import Match, constant, op, value

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

DIRECT = op(ConvolutionOp, value(element="float32"), constant("kernel"), ..., transposed=False, pooling=None).named(
    "convolution"
)
"""A convolution in float32 with a constant kernel, neither transposed nor pooled."""


def kernel_of(m: Match, old: SSAValue, array: Array, what: str) -> SSAValue:
    """A constant for other weights than a kernel's; `what` is added to the name of that."""
    made = ConstantOp.from_array(array, weights_of(m.ctx), f"{old.name_hint or 'kernel'} {what}")
    return m.insert(made).output
