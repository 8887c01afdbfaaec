"""What is known when the engine is built about a tensor value: its elements, or the one number that all of them are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr
from xdsl.ir import SSAValue

from mlirt.dialects.context import weights_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def array_of(value: SSAValue, ctx: Context) -> Array | None:
    """The elements of a constant; None for a value that is computed."""
    owner = value.owner
    return owner.array(weights_of(ctx)) if isinstance(owner, ConstantOp) else None


def splat_of(value: SSAValue) -> float | None:
    """The number that all elements of a small constant are; None for other values."""
    owner = value.owner
    if not isinstance(owner, ConstantOp) or not isinstance(owner.value, DenseIntOrFPElementsAttr):
        return None
    flat = owner.array(WeightStore()).reshape(-1)
    is_splat = flat.size > 0 and flat.tobytes() == flat[:1].tobytes() * flat.size
    return flat[0].item() if is_splat else None
