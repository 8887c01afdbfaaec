"""A product is scaled before its bias is added, so that its weights can take the scale."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.constant_values import array_of
from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import element_count, element_of, is_float
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.elementwise import ElementwiseKind, ElementwiseOp
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp
from mlirt.passes.remarks import applied, missed

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class MoveScaleBeforeBiasPass(ModulePass):
    """Exchange the addition of a constant to a matrix product and the multiplication by a number that follows it.

    The product has a constant right-hand side, and nothing else reads it or the sum. So queries and keys that are
    scaled behind their bias become products like the values.

    Before:

        %p = trt.matrix_multiply %x, %w : ...
        %s = trt.elementwise sum %p, %b : ...
        %y = trt.elementwise prod %s, %c : ...

    After:

        %p = trt.matrix_multiply %x, %w : ...
        %s = trt.elementwise prod %p, %c : ...
        %y = trt.elementwise sum %s, %bc : ...
    """

    name = "move-scale-before-bias"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ElementwiseOp) and inner.kind.data is ElementwiseKind.PROD:
                    _exchange(inner, ctx)


def _exchange(op: ElementwiseOp, ctx: Context) -> None:
    for scaled, number in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        factor = array_of(number, ctx)
        if factor is None or factor.size != 1:
            continue
        parts = _product_and_bias(scaled, op)
        if parts is None:
            missed(op, "it does not scale the sum of a matrix product and a constant that nothing else reads")
            continue
        product, bias = parts
        array = array_of(bias, ctx)
        if array is None:
            continue
        _replace(op, product, number, array * factor.reshape(()).astype(array.dtype), ctx)
        return


def _replace(op: ElementwiseOp, product: SSAValue, number: SSAValue, bias: Array, ctx: Context) -> None:
    """Put the scaled product plus the scaled bias in the place of `op`, which scaled their sum."""
    block, total = op.parent, next(iter(product.uses)).operation
    assert block is not None
    shift = ConstantOp.from_array(bias, weights_of(ctx), f"{name_of(total)}.bias")
    first = ElementwiseOp.build_inferred([product, number], op.properties, op.location)
    second = ElementwiseOp.build_inferred([first.output, shift.output], total.properties, total.location)
    block.insert_ops_before([shift, first, second], op)
    applied(first)
    second.output.name_hint = op.output.name_hint
    op.output.replace_all_uses_with(second.output)
    block.erase_op(op)
    block.erase_op(total)


def _product_and_bias(value: SSAValue, reader: ElementwiseOp) -> tuple[SSAValue, SSAValue] | None:
    """The matrix product and the constant of which a value is the sum."""
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
