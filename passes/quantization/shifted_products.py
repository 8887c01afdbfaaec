"""Products of signed int8 as those of unsigned int8 with the zero point 128, for vector instructions (VNNI)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import BoolAttr, IntegerAttr, i8, i32, i64
from xdsl.ir import Operation, SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.integer_list import integer_list
from mlirt.dialects.tensor_types import element_of, rank
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.fully_connected import FullyConnectedOp
from mlirt.dialects.trt.int8_products import multiplies_int8
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.reduce import ReduceKind, ReduceKindAttr, ReduceOp
from mlirt.dialects.trt.shuffle import ShuffleOp
from mlirt.passes.quantization.int8_layers import Int8Layers
from mlirt.passes.quantization.shifted_int8 import HALF

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Product = ConvolutionOp | FullyConnectedOp | MatrixMultiplyOp


def is_shiftable(op: Operation, ctx: Context) -> bool:
    """Whether an op multiplies int8 with weights whose sums can be had."""
    if not isinstance(op, Product) or not multiplies_int8(op.operands[0].type, op.operands[1].type):
        return False
    known = array_of(op.operands[1], ctx) is not None
    matrices = isinstance(op, MatrixMultiplyOp) and MatrixOperation.VECTOR not in (op.lhs_op.data, op.rhs_op.data)
    return element_of(op.operands[0].type) == i8 and (known or matrices)


def shift_product(op: Product, raised: SSAValue, ctx: Context) -> None:
    """Let a layer read its operand with a zero point that is 128 more, and correct the result for it."""
    op.operands[0] = raised
    if isinstance(op, MatrixMultiplyOp):
        _shift_sums(op, ctx)
        return
    if isinstance(op, ConvolutionOp):
        op.properties["padding_value"] = IntegerAttr(op.padding_value.value.data + HALF, i64)
    weights = array_of(op.kernel, ctx)
    assert weights is not None
    _shift_bias(op, -HALF * weights.astype("int64").reshape(len(weights), -1).sum(1), ctx)


def _shift_bias(op: ConvolutionOp | FullyConnectedOp, offset: Array, ctx: Context) -> None:
    write = Int8Layers.in_front_of(op, ctx)
    known = None if op.bias is None else array_of(op.bias, ctx)
    if op.bias is None or known is not None:
        bias = write.constant((offset if known is None else offset + known).astype("int32"))
    else:
        bias = write.binary(ElementwiseKind.SUM, op.bias, write.constant(offset.astype("int32")))
    op.operands = [*op.operands[:2], bias]


def _shift_sums(op: MatrixMultiplyOp, ctx: Context) -> None:
    """Take 128 times the sum of each column from a product, in the constant that is added to it if there is one."""
    block, reader = op.parent, op.output.get_user_of_unique_use()
    assert block is not None
    weights = array_of(op.rhs, ctx)
    offset = None if weights is None else _known_sums(op, -HALF * weights.astype("int64"))
    if offset is not None and isinstance(reader, ElementwiseOp) and reader.kind.data is ElementwiseKind.SUM:
        place = 1 if reader.lhs is op.output else 0
        known = array_of(reader.operands[place], ctx)
        if known is not None:
            reader.operands[place] = Int8Layers.in_front_of(reader, ctx, op).constant((offset + known).astype("int32"))
            return
    assert op.next_op is not None
    write = Int8Layers.in_front_of(op.next_op, ctx, op)
    added = _sums_of_run(op, write) if offset is None else write.constant(offset.astype("int32"))
    name, uses = op.output.name_hint, list(op.output.uses)
    total = write.binary(ElementwiseKind.SUM, op.output, added)
    total.name_hint = name
    for use in uses:
        use.operation.operands[use.index] = total


def _known_sums(op: MatrixMultiplyOp, weights: Array) -> Array:
    """The sum of each column of constant weights, laid along the columns of the product."""
    import numpy as np

    if op.rhs_op.data is MatrixOperation.NONE:
        sums = weights.sum(-2, keepdims=True)
    elif op.rhs_op.data is MatrixOperation.TRANSPOSE:
        sums = weights.sum(-1)[..., None, :]
    else:
        sums = weights.sum(-1, keepdims=True)
    if op.lhs_op.data is MatrixOperation.VECTOR:
        sums = sums[..., 0] if op.rhs_op.data is MatrixOperation.VECTOR else sums[..., 0, :]
    return np.asarray(sums.reshape([1] * (rank(op.output.type) - sums.ndim) + list(sums.shape)))


def _sums_of_run(op: MatrixMultiplyOp, write: Int8Layers) -> SSAValue:
    """-128 times the sum of each column of weights that the run computes."""
    wide, axes = write.cast(op.rhs, i32), rank(op.rhs.type)
    swapped = op.rhs_op.data is MatrixOperation.TRANSPOSE
    properties = {
        "kind": ReduceKindAttr(ReduceKind.SUM),
        "axes": integer_list([axes - 1 if swapped else axes - 2]),
        "keep_dims": BoolAttr.from_bool(True),
    }
    sums = write.layer(ReduceOp, [wide], properties)
    if swapped:
        order = [*range(axes - 2), axes - 1, axes - 2]
        sums = write.layer(ShuffleOp, [sums, None], {"first_transpose": integer_list(order)})
    return write.binary(ElementwiseKind.PROD, sums, write.number_like(-HALF, sums, i32))
