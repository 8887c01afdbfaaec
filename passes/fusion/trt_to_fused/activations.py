"""Activations become pointwise ops with a scalar formula."""

from __future__ import annotations

from xdsl.dialects.builtin import f64

from mlirt.dialects.fused.scalar_activations import FORMULAS
from mlirt.dialects.fused.scalar_builder import compute_type
from mlirt.dialects.tensor_types import element_of, is_float
from mlirt.dialects.trt.activation import ActivationKind, ActivationOp
from mlirt.passes.fusion.trt_to_fused.conversion import Conversion, Conversions

_ON_INTEGERS = (ActivationKind.RELU, ActivationKind.CLIP)


def convert_activation(at: Conversion) -> None:
    """`trt.activation` becomes a pointwise op; integers take the floating-point formulas in float64."""
    op = at.op
    assert isinstance(op, ActivationOp)
    kind, element = op.kind.data, element_of(op.input.type)
    exact = is_float(element) or kind in _ON_INTEGERS
    alpha, beta = op.alpha.value.data, op.beta.value.data
    compute = compute_type(element) if exact else f64
    at.replace(at.pointwise([op.input], op.output.type, compute, lambda s, x: FORMULAS[kind](s, x[0], alpha, beta)))


CONVERSIONS: Conversions = {ActivationOp: convert_activation}
