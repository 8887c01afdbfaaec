"""In a quantised network sigmoid and tanh have the same bits on every target."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp
from mlirt.passes.rules import Rule, RulePass, layer, op, value


@dataclass(frozen=True)
class UseRationalActivationsPass(RulePass):
    """Evaluate float32 sigmoids and tanhs as quotients of polynomials, where a network quantises anything.

    The exponential functions of targets differ in their last bits. What is rounded to integers behind them would differ
    by a step then, here and there, and all that follows by more. The quotients are onnxruntime's own.

    Before:

        %y = trt.activation sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
        %q = trt.quantize %y, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>

    After:

        %y = trt.activation rational_sigmoid %x : (tensor<4xf32>) -> tensor<4xf32>
        %q = trt.quantize %y, %s : (tensor<4xf32>, tensor<f32>) -> tensor<4xi8>
    """

    name = "use-rational-activations"

    rules = tuple(
        Rule(op(ActivationOp, value("x", element="float32"), kind=kind), layer(ActivationOp, value("x"), kind=rational))
        for kind, rational in (("sigmoid", "rational_sigmoid"), ("tanh", "rational_tanh"))
    )

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if any(isinstance(inner, QuantizeOp | DequantizeOp) for inner in op.walk()):
            super().apply(ctx, op)
