"""Adds a number to each channel of what a product computes, in its bias or in the sum behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import dims, element_of
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.dialects.weights import WeightStore

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


def add_to_channels(layer: TensorOp, numbers: Array, store: WeightStore) -> None:
    """Let a convolution, or a product with a bias behind it, add `numbers`; nothing where a product has no bias."""
    if isinstance(layer, ConvolutionOp):
        if layer.bias is None:
            layer.operands = [*layer.operands, _constant(numbers, layer, store)]
        elif (bias := _array(layer.bias, store)) is not None:
            layer.operands[2] = _constant(bias + numbers, layer, store)
    elif isinstance(layer, MatrixMultiplyOp):
        reader = layer.output.get_user_of_unique_use()
        if isinstance(reader, ElementwiseOp) and reader.kind.data is ElementwiseKind.SUM:
            position = 1 if reader.lhs is layer.output else 0
            bias = _array(reader.operands[position], store)
            if bias is not None and dims(reader.output.type)[-1] == len(numbers):
                reader.operands[position] = _constant(bias + numbers, reader, store)


def _array(value: SSAValue, store: WeightStore) -> Array | None:
    owner = value.owner
    return owner.array(store) if isinstance(owner, ConstantOp) and element_of(value.type) == f32 else None


def _constant(numbers: Array, before: Operation, store: WeightStore) -> SSAValue:
    import numpy as np

    made = ConstantOp.from_array(numbers.astype(np.float32), store, "bias", before.location)
    block = before.parent
    assert block is not None
    block.insert_op_before(made, before)
    return made.output
