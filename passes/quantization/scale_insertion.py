"""The ops that round a tensor or weights to 8 bits and widen them again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import I64, IntegerAttr, i8, i64
from xdsl.ir import Block, Operation, SSAValue

from mlirt.dialects.locations import name_of, named
from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import with_element
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.dialects.weights import WeightStore
from mlirt.passes.quantization.weight_rounding import rounded_weights

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def quantized_and_back(value: SSAValue, name: str, scale: float, store: WeightStore) -> SSAValue:
    """The tensor in 8 bits and widened again, behind the op that makes it; other readers keep the tensor itself."""
    import numpy as np

    owner = value.owner
    location = named(f"{name} in 8 bits") if isinstance(owner, Block) else owner.location
    factor = ConstantOp.from_array(np.asarray(scale, np.float32), store, "scale", location)
    narrow = QuantizeOp.build(
        operands=[value, factor.output, None], result_types=[with_element(value.type, i8)], properties={}
    )
    wide = DequantizeOp.build_inferred([narrow.output, factor.output, None], {}, location)
    narrow.location = location
    _insert_behind(value, [factor, narrow, wide])
    return wide.output


def _insert_behind(value: SSAValue, ops: list[Operation]) -> None:
    owner = value.owner
    if not isinstance(owner, Block):
        block = owner.parent
        assert block is not None
        block.insert_ops_after(ops, owner)
    elif owner.first_op is None:
        owner.add_ops(ops)
    else:
        owner.insert_ops_before(ops, owner.first_op)


def dequantized_weights(layer: TensorOp, weights: Array, axis: int, store: WeightStore, hint: str) -> SSAValue:
    """The layer's weights as 8-bit constants that are widened, in front of it."""
    integers, scales = rounded_weights(weights, axis)
    axis_of: dict[str, IntegerAttr[I64]] = {"axis": IntegerAttr(axis, i64)}
    narrow = ConstantOp.from_array(integers, store, hint, layer.location)
    factors = ConstantOp.from_array(scales, store, f"{name_of(layer)}.scales", layer.location)
    wide = DequantizeOp.build_inferred([narrow.output, factors.output, None], axis_of, layer.location)
    block = layer.parent
    assert block is not None
    block.insert_ops_before([narrow, factors, wide], layer)
    return wide.output
