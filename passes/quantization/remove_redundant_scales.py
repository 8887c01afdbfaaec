"""Erases pairs of quantize and dequantize that undo each other, and bounds that int8 values have anyway."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.quantization.activation_bounds import holds_before, is_implied
from mlirt.passes.quantization.scalings import Scaling, scaling_of
from mlirt.passes.rules import Match, Outcome, RulePass, either, op, rule, value

REAL = op(DequantizeOp).shared().named("real")
BOUNDS = {"kind": either("relu", "clip")}


@dataclass(frozen=True)
class RemoveRedundantScalesPass(RulePass):
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

    @rule(op(QuantizeOp, REAL, ...).named("integers"))
    def cancel(self, ctx: Context, integers: QuantizeOp, real: DequantizeOp) -> Outcome:
        inner, outer = scaling_of(real, ctx), scaling_of(integers, ctx)
        same = isinstance(inner, Scaling) and isinstance(outer, Scaling) and inner.equals(outer)
        return real.input if same else "it has another scale or zero point than {real}, or one of a run"

    @rule(op(ActivationOp, REAL, **BOUNDS).named("bounded"))
    def drop_bounds_of_integers(self, ctx: Context, bounded: ActivationOp, real: DequantizeOp) -> Outcome:
        scaling = scaling_of(real, ctx)
        holds = isinstance(scaling, Scaling) and holds_before(bounded, scaling)
        return real.output if holds else "integers of {real} stand for numbers beyond its bounds"

    @rule(op(QuantizeOp, op(ActivationOp, value(), **BOUNDS).named("bounded"), ...).named("integers"))
    def leave_bounds_to_integers(self, m: Match, ctx: Context, integers: QuantizeOp, bounded: ActivationOp) -> Outcome:
        scaling = scaling_of(integers, ctx)
        if not isinstance(scaling, Scaling) or not is_implied(bounded, scaling):
            return "integers stand for numbers beyond the bounds of {bounded}"
        return m.make(QuantizeOp, bounded.input, integers.scale, integers.zero_point, **integers.properties)
