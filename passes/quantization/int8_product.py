"""Which products of dequantised tensors can multiply the bytes themselves, and with what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.tensor_types import dims, rank
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.passes.quantization.integer_weights import IntegerWeights, integer_bias, integer_weights
from mlirt.passes.quantization.scalings import Refusal, quantized_input

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Product = MatrixMultiplyOp | FullyConnectedOp


@dataclass(frozen=True, eq=False)
class IntegerProduct:
    """What an integer product needs: bytes and weights, what is added to the sums (int64), and the scale of the sums.

    `addition` is 1-D along the columns of the result, or 0-D where a vector stands on the right. `last` is the layer
    whose results are replaced: the product, or the addition of its bias.
    """

    input: SSAValue
    weights: IntegerWeights
    addition: Array
    factor: Array
    last: Operation


def integer_product(op: Product, ctx: Context) -> IntegerProduct | Refusal:
    """How a product becomes one of integers, or why it does not."""
    import numpy as np

    source = quantized_input(op.operands[0], ctx)
    if isinstance(source, Refusal):
        return source
    axis = _column_axis(op)
    weights = integer_weights(op.operands[1], -1 if axis is None else axis, ctx)
    if isinstance(weights, Refusal):
        return weights
    values, scaling = source
    factor = np.asarray(scaling.scale * weights.scale)
    addition = -int(scaling.zero) * _sums(op, weights.array)
    if addition.any() and addition.ndim > 1:
        return Refusal("its input has a zero point, and its weights are more than one matrix")
    if isinstance(op, FullyConnectedOp):
        bias = None if op.bias is None else integer_bias(op.bias, factor, ctx)
        last: Operation = op
    else:
        bias, last = _added_bias(op, factor, ctx)
    if isinstance(bias, Refusal):
        return bias
    return IntegerProduct(values, weights, addition if bias is None else addition + bias, factor, last)


def _column_axis(op: Product) -> int | None:
    """The axis of the weights with one slice per column of the result."""
    if isinstance(op, FullyConnectedOp):
        return 0
    if op.rhs_op.data is MatrixOperation.VECTOR:
        return None
    return rank(op.rhs.type) - (2 if op.rhs_op.data is MatrixOperation.TRANSPOSE else 1)


def _sums(op: Product, weights: Array) -> Array:
    """The sum of the weights that each column of the result is made with; of one matrix they have one axis."""
    import numpy as np

    axis = -1 if isinstance(op, FullyConnectedOp) or op.rhs_op.data is not MatrixOperation.NONE else -2
    sums = weights.astype(np.int64).sum(axis)
    return sums.reshape(sums.shape[-1:]) if all(length == 1 for length in sums.shape[:-1]) else sums


def _added_bias(op: MatrixMultiplyOp, factor: Array, ctx: Context) -> tuple[Array | None, Operation]:
    """The dequantised constant that alone is added to a product, and the addition; else nothing and the product."""
    reader = op.output.get_user_of_unique_use()
    if not isinstance(reader, ElementwiseOp) or reader.kind.data is not ElementwiseKind.SUM:
        return None, op
    other = reader.rhs if reader.lhs is op.output else reader.lhs
    axes, vectors = rank(reader.output.type), (op.lhs_op.data, op.rhs_op.data).count(MatrixOperation.VECTOR)
    in_columns = not vectors and all(length == 1 for length in dims(other.type)[:-1])
    same_place = reader.parent is op.parent and dims(reader.output.type) == dims(op.output.type)
    if not (isinstance(other.owner, DequantizeOp) and in_columns and same_place):
        return None, op
    bias = integer_bias(other, factor, ctx, axes - 1)
    if isinstance(bias, Refusal):
        return None, op
    return bias.reshape(-1), reader
