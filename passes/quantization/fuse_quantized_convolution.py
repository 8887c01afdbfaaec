"""Convolutions of quantised tensors compute with the integers themselves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, i64
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.context import weights_of
from mlirt.dialects.locations import name_of
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.trt.convolution import ConvolutionOp
from mlirt.passes.quantization.convolution_of_bytes import Match, match
from mlirt.passes.quantization.rescaling import rescale

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array


@dataclass(frozen=True)
class FuseQuantizedConvolutionPass(ModulePass):
    """Make a convolution of dequantised bytes with dequantised constant weights an exact one of bytes.

    Padding holds the input's zero point z, so that z times the sum of each kernel's weights is all that it adds; this
    and the bias, rounded to units of the product of both scales, are one integer bias. The sum is multiplied once: by
    the product of the scales, or where only a quantisation reads the result, by that divided by its scale. Rectifiers
    and clips that the range of the quantised numbers implies go.

    Before:

        %a = trt.dequantize %q, %sx, %zx : ...
        %w = trt.dequantize %k, %sw : ...
        %c = trt.convolution %a, %w, %b : ...
        %r = trt.activation relu %c : ...
        %y = trt.quantize %r, %sy, %zy : ...

    After:

        %c = trt.convolution %q, %k, %bias {padding_value = ..} : (ui8, i8, i32) -> i32
        %f = trt.identity %c : i32 to f32
        %m = trt.elementwise prod %f, %sx_sw_over_sy : ...
        %y = trt.quantize %m, %one, %zy : ...
    """

    name = "fuse-quantized-convolution"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ConvolutionOp):
                    found = match(inner, ctx)
                    if isinstance(found, Match):
                        _fuse(inner, found, ctx)


def _fuse(op: ConvolutionOp, found: Match, ctx: Context) -> None:
    import numpy as np

    block = op.parent
    assert block is not None

    def constant(array: Array, role: str) -> SSAValue:
        made: Operation = ConstantOp.from_array(array, weights_of(ctx), f"{name_of(op)}.{role}", op.location)
        block.insert_op_before(made, op)
        return made.results[0]

    kernel = found.weights.array
    offset = -found.zero * kernel.astype(np.int64).reshape(len(kernel), -1).sum(1)
    bias = offset if found.bias is None else offset + found.bias
    total = ConvolutionOp.build_inferred(
        [
            found.input,
            constant(kernel, "kernel"),
            constant(bias.astype(np.int32), "bias") if bias.any() else None,
        ],
        {**op.properties, "padding_value": IntegerAttr(found.zero, i64)},
        op.location,
    )
    block.insert_op_before(total, op)
    rescale(op, total.output, found.factor, -1 - len(op.sizes()), ctx)
