"""Conversions between numbers and integers that undo each other go, and so do bounds that integers have anyway."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass

from mlirt.dialects.locations import fuse
from mlirt.dialects.regions import tensor_blocks
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.quantization.activation_bounds import KINDS, holds_before, is_implied
from mlirt.passes.quantization.scalings import Scaling, scaling_of


@dataclass(frozen=True)
class RemoveRedundantScalesPass(ModulePass):
    """Let a quantisation of dequantised integers with the same scale and zero point be these integers.

    So of a chain of such conversions one is left. Rectifiers and clips go where the integers in front of or behind them
    hold no number beyond their bounds.

    Before:

        %a = trt.dequantize %x, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
        %b = trt.quantize %a, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
        %y = trt.dequantize %b, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>

    After:

        %y = trt.dequantize %x, %s : (tensor<4xi8>, tensor<f32>) -> tensor<4xf32>
    """

    name = "remove-redundant-scales"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for block in tensor_blocks(op):
            for inner in list(block.ops):
                if isinstance(inner, ActivationOp):
                    _drop_bounds(inner, ctx)
                elif isinstance(inner, QuantizeOp):
                    _cancel(inner, ctx)


def _cancel(op: QuantizeOp, ctx: Context) -> None:
    before = op.input.owner
    if not isinstance(before, DequantizeOp):
        return
    inner, outer = scaling_of(before, ctx), scaling_of(op, ctx)
    if isinstance(inner, Scaling) and isinstance(outer, Scaling) and inner.equals(outer):
        _replace(op, before.input)
        if before.output.first_use is None:
            before.detach()
            before.erase()


def _drop_bounds(op: ActivationOp, ctx: Context) -> None:
    if op.kind.data not in KINDS:
        return
    before, behind = op.input.owner, op.output.get_user_of_unique_use()
    if isinstance(before, DequantizeOp):
        scaling = scaling_of(before, ctx)
        if isinstance(scaling, Scaling) and holds_before(op, scaling):
            _replace(op, op.input)
            return
    if isinstance(behind, QuantizeOp):
        scaling = scaling_of(behind, ctx)
        if isinstance(scaling, Scaling) and is_implied(op, scaling):
            behind.location = fuse(op, behind)
            _replace(op, op.input)


def _replace(op: Operation, value: SSAValue) -> None:
    op.results[0].replace_all_uses_with(value)
    op.detach()
    op.erase()
