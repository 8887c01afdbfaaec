"""Matrix products of dequantised 8-bit floats compute with the 8-bit floats themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.tensor_types import rank
from mlirt.dialects.trt.elementwise import ElementwiseKind
from mlirt.dialects.trt.matrix_multiply import MatrixMultiplyOp, MatrixOperation
from mlirt.dialects.trt.quantize import DequantizeOp
from mlirt.passes.quantization.byte_layers import ByteLayers
from mlirt.passes.quantization.scalings import Scaling, scaling_of

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class FuseFloat8ProductsPass(ModulePass):
    """Multiply 8-bit floats before their scales: the sum of products, in float32, is multiplied by both.

    The scales must be known, one for all of a tensor or, on the right, one for each column. On a CPU nothing multiplies
    8-bit floats: there the dequantised numbers are multiplied.

    Before:

        %a = trt.dequantize %q, %sx : (tensor<4x8xf8E4M3FN>, tensor<f32>) -> tensor<4x8xf32>
        %w = trt.dequantize %k, %sw : (tensor<8x8xf8E4M3FN>, tensor<f32>) -> tensor<8x8xf32>
        %p = trt.matrix_multiply %a, %w : ..

    After:

        %s = trt.matrix_multiply %q, %k : (tensor<4x8xf8E4M3FN>, tensor<8x8xf8E4M3FN>) -> tensor<4x8xf32>
        %p = trt.elementwise prod %s, %sx_sw : ..
    """

    name = "fuse-float8-products"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, MatrixMultiplyOp):
                    _fuse(inner, ctx)


def _fuse(op: MatrixMultiplyOp, ctx: Context) -> None:
    factors = [_factor(value, ctx) for value in op.operands]
    if factors[0] is None or factors[1] is None:
        return
    (left, first), (right, second) = factors[0], factors[1]
    transposed = op.rhs_op.data is MatrixOperation.TRANSPOSE
    column = None if op.rhs_op.data is MatrixOperation.VECTOR else rank(right.type) - (2 if transposed else 1)
    if first.axis is not None or second.axis not in (None, column):
        return
    write = ByteLayers.in_front_of(op, ctx)
    total = write.layer(MatrixMultiplyOp, [left, right], op.properties)
    axes = rank(total.type)
    multiplier: Array = first.scale * second.scale
    shape = [-1 if axis == axes - 1 and multiplier.ndim else 1 for axis in range(axes)]
    scaled = write.binary(ElementwiseKind.PROD, total, write.constant(multiplier.reshape(shape)))
    scaled.name_hint = op.output.name_hint
    op.output.replace_all_uses_with(scaled)
    op.detach()
    op.erase()


def _factor(value: SSAValue, ctx: Context) -> tuple[SSAValue, Scaling] | None:
    """The 8-bit floats behind an operand, and what they are scaled by; None where there are none."""
    owner = value.owner
    if not isinstance(owner, DequantizeOp):
        return None
    scaling = scaling_of(owner, ctx, float8=True)
    return (owner.input, scaling) if isinstance(scaling, Scaling) else None
