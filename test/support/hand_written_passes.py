"""What two of the package's passes would be without rules, for comparison."""

from __future__ import annotations

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import fuse, name_of
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import element_count, element_of, is_float
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp


def one_relu(ctx: Context, module: ModuleOp) -> None:
    """Make one ReLU of two, where nothing else reads the first."""
    for block in tensor_blocks(module):
        for op in list(block.ops):
            if not isinstance(op, ActivationOp) or op.kind.data is not ActivationKind.RELU:
                continue
            inner = op.input.owner
            if not isinstance(inner, ActivationOp) or inner.kind.data is not ActivationKind.RELU:
                continue
            if inner.parent is not block or not inner.output.has_one_use():
                continue
            made = ActivationOp.build_inferred([inner.input], {"kind": "relu"}, fuse(inner, op))
            block.insert_op_before(made, op)
            made.output.name_hint = op.output.name_hint
            op.output.replace_all_uses_with(made.output)
            block.erase_op(op)
            block.erase_op(inner)


def move_scale_before_bias(ctx: Context, module: ModuleOp) -> None:
    """Exchange the addition of a constant to a matrix product and the multiplication by a number that follows it."""
    for block in tensor_blocks(module):
        for op in list(block.ops):
            if isinstance(op, ElementwiseOp) and op.kind.data is ElementwiseKind.PROD:
                _exchange(op, ctx)


def _exchange(op: ElementwiseOp, ctx: Context) -> None:
    for scaled, number in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        factor = array_of(number, ctx)
        parts = None if factor is None or factor.size != 1 else _product_and_bias(scaled, op)
        if factor is None or parts is None:
            continue
        product, bias = parts
        array = array_of(bias, ctx)
        block, total = op.parent, next(iter(product.uses)).operation
        assert block is not None
        assert array is not None
        scaled_bias = array * factor.reshape(()).astype(array.dtype)
        shift = ConstantOp.from_array(scaled_bias, weights_of(ctx), f"{name_of(total)}.bias")
        first = ElementwiseOp.build_inferred([product, number], op.properties, op.location)
        second = ElementwiseOp.build_inferred([first.output, shift.output], total.properties, total.location)
        block.insert_ops_before([shift, first, second], op)
        second.output.name_hint = op.output.name_hint
        op.output.replace_all_uses_with(second.output)
        block.erase_op(op)
        block.erase_op(total)
        return


def _product_and_bias(value: SSAValue, reader: ElementwiseOp) -> tuple[SSAValue, SSAValue] | None:
    op = value.owner
    if not isinstance(op, ElementwiseOp) or op.kind.data is not ElementwiseKind.SUM or op.parent is not reader.parent:
        return None
    if not value.has_one_use() or not is_float(element_of(value.type)):
        return None
    for product, bias in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        layer = product.owner
        if isinstance(layer, MatrixMultiplyOp) and isinstance(bias.owner, ConstantOp) and product.has_one_use():
            same = element_count(product.type) == element_count(value.type)
            return (product, bias) if same and isinstance(layer.rhs.owner, ConstantOp) else None
    return None
