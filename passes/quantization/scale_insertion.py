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
from mlirt.passes.quantization.channel_statistics import weight_channel_axis
from mlirt.passes.quantization.mean_correction import add_to_channels
from mlirt.passes.quantization.operand_steps import Steps
from mlirt.passes.quantization.weight_rounding import rounded_weights

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def quantized_and_back(value: SSAValue, name: str, steps: Steps, store: WeightStore) -> SSAValue:
    """The tensor in 8 bits and widened again, behind the op that makes it; other readers keep the tensor itself.

    With a step for each channel the bytes are widened as if there was one: the weights that they meet make up for it.
    """
    import numpy as np

    owner = value.owner
    location = named(f"{name} in 8 bits") if isinstance(owner, Block) else owner.location
    made: list[Operation] = []

    def constant(array: Array, hint: str) -> SSAValue:
        made.append(ConstantOp.from_array(array, store, hint, location))
        return made[-1].results[0]

    scale = factors = constant(np.asarray(steps.scale, np.float32), "scale")
    zero = zeros = constant(np.asarray(steps.zero, np.int8), "zero") if steps.zero else None
    axis_of: dict[str, IntegerAttr[I64]] = {}
    if steps.shares is not None and steps.axis is not None:
        scales = (steps.shares * np.float32(steps.scale)).astype(np.float32)
        factors = constant(scales, "scales")
        zeros = constant(np.full(scales.shape, steps.zero, np.int8), "zeros") if steps.zero else None
        axis_of = {"axis": IntegerAttr(steps.axis, i64)}
    narrow = QuantizeOp.build(
        operands=[value, factors, zeros], result_types=[with_element(value.type, i8)], properties=axis_of
    )
    wide = DequantizeOp.build_inferred([narrow.output, scale, zero], {}, location)
    narrow.location = location
    _insert_behind(value, [*made, narrow, wide])
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


def round_weights(layer: TensorOp, weights: Array, axis: int, steps: Steps, store: WeightStore) -> None:
    """Let a layer read its weights as 8-bit constants that are widened, in front of it.

    They are multiplied with the shares of the channels that they meet. What the rounding changes in the mean of each
    result, as far as the means of the channels tell, is added to the layer's bias.
    """
    whole = weights if steps.shares is None else weights * _along(steps.shares, layer, weights)
    integers, scales = rounded_weights(whole, axis)
    if steps.means is not None:
        add_to_channels(layer, _change(layer, whole, integers, scales, axis, steps), store)
    axis_of: dict[str, IntegerAttr[I64]] = {"axis": IntegerAttr(axis, i64)}
    narrow = ConstantOp.from_array(integers, store, f"{name_of(layer)}.kernel", layer.location)
    factors = ConstantOp.from_array(scales, store, f"{name_of(layer)}.scales", layer.location)
    wide = DequantizeOp.build_inferred([narrow.output, factors.output, None], axis_of, layer.location)
    block = layer.parent
    assert block is not None
    block.insert_ops_before([narrow, factors, wide], layer)
    layer.operands[1] = wide.output


def _along(numbers: Array, layer: TensorOp, weights: Array) -> Array:
    """A number for each channel of a layer's input, laid along the axis of the weights that meets them."""
    axis = weight_channel_axis(layer)
    return numbers.reshape([-1 if k == axis else 1 for k in range(weights.ndim)])


def _change(layer: TensorOp, whole: Array, integers: Array, scales: Array, axis: int, steps: Steps) -> Array:
    """By how much the mean of each result of a layer is less for the rounding of its weights."""
    import numpy as np

    assert steps.means is not None
    reached = steps.means.astype(np.float64) / (1.0 if steps.shares is None else steps.shares)
    rounded = integers * scales.astype(np.float64).reshape([-1 if k == axis else 1 for k in range(integers.ndim)])
    missing = (whole.astype(np.float64) - rounded) * _along(reached, layer, whole)
    return missing.sum(axis=tuple(k for k in range(missing.ndim) if k != axis))
