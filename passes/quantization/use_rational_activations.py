"""In a quantised network sigmoid and tanh have the same bits on every target."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.passes import ModulePass

from mlirt.dialects.tensor_types import element_of
from mlirt.dialects.trt.activation import ActivationKind, ActivationKindAttr, ActivationOp
from mlirt.dialects.trt.quantize import DequantizeOp, QuantizeOp

_RATIONAL = {
    ActivationKind.SIGMOID: ActivationKind.RATIONAL_SIGMOID,
    ActivationKind.TANH: ActivationKind.RATIONAL_TANH,
}


@dataclass(frozen=True)
class UseRationalActivationsPass(ModulePass):
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

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not any(isinstance(inner, QuantizeOp | DequantizeOp) for inner in op.walk()):
            return
        for inner in op.walk():
            if isinstance(inner, ActivationOp) and element_of(inner.input.type) == f32:
                kind = inner.kind.data
                inner.kind = ActivationKindAttr(_RATIONAL.get(kind, kind))
