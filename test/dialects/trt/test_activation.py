"""Activations (tensorrt-features.md#1.1a, 1.1b): the reference against formulas in double precision and against ONNX
Runtime.
"""

from __future__ import annotations

from collections.abc import Callable
from math import erf, exp, log, log1p, pi, sqrt, tanh

import ml_dtypes
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.activation import ActivationKind, ActivationOp

KIND = ActivationKind

FORMULAS: dict[ActivationKind, Callable[[float, float, float], float]] = {
    KIND.RELU: lambda x, a, b: max(x, 0),
    KIND.SIGMOID: lambda x, a, b: 1 / (1 + exp(-x)),
    KIND.TANH: lambda x, a, b: tanh(x),
    KIND.LEAKY_RELU: lambda x, a, b: x if x >= 0 else a * x,
    KIND.ELU: lambda x, a, b: x if x >= 0 else a * (exp(x) - 1),
    KIND.SELU: lambda x, a, b: b * (x if x > 0 else a * (exp(x) - 1)),
    KIND.SOFTSIGN: lambda x, a, b: x / (1 + abs(x)),
    KIND.SOFTPLUS: lambda x, a, b: a * log(exp(b * x) + 1),
    KIND.CLIP: lambda x, a, b: min(max(x, a), b),
    KIND.HARD_SIGMOID: lambda x, a, b: min(max(a * x + b, 0), 1),
    KIND.SCALED_TANH: lambda x, a, b: a * tanh(b * x),
    KIND.THRESHOLDED_RELU: lambda x, a, b: x if x > a else 0,
    KIND.GELU_ERF: lambda x, a, b: x * (1 + erf(x / sqrt(2))) / 2,
    KIND.GELU_TANH: lambda x, a, b: x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x**3))) / 2,
    KIND.HARD_SWISH: lambda x, a, b: x * min(max(a * x + b, 0), 1),
    KIND.MISH: lambda x, a, b: x * tanh(log1p(exp(x))),
    KIND.CELU: lambda x, a, b: max(x, 0) + min(0, a * (exp(x / a) - 1)),
    KIND.RATIONAL_SIGMOID: lambda x, a, b: 1 / (1 + exp(-x)),
    KIND.RATIONAL_TANH: lambda x, a, b: tanh(x),
}


@pytest.mark.parametrize("kind", list(ActivationKind))
@pytest.mark.parametrize(("alpha", "beta"), [(0.3, 0.7), (1.6, 1.05)])
def test_formulas_1_1(kind: ActivationKind, alpha: float, beta: float) -> None:
    x = 3 * random((50,))
    (y,) = run(ActivationOp, [x], {0: "n"}, kind=kind, alpha=alpha, beta=beta)
    expected = [FORMULAS[kind](float(value), alpha, beta) for value in x]
    assert_allclose(y, expected, rtol=1e-6, atol=1e-7)


def test_every_kind_has_a_formula() -> None:
    assert set(FORMULAS) == set(ActivationKind)


@pytest.mark.parametrize(
    ("kind", "node", "alpha", "beta"),
    [
        (KIND.RELU, "Relu", 0.0, 0.0),
        (KIND.SIGMOID, "Sigmoid", 0.0, 0.0),
        (KIND.TANH, "Tanh", 0.0, 0.0),
        (KIND.ELU, "Elu", 1.0, 0.0),
        (KIND.SELU, "Selu", 1.6732632423543772, 1.0507009873554805),
        (KIND.HARD_SIGMOID, "HardSigmoid", 0.2, 0.5),
        (KIND.HARD_SWISH, "HardSwish", 1 / 6, 0.5),
        (KIND.SOFTPLUS, "Softplus", 1.0, 1.0),
        (KIND.CELU, "Celu", 1.0, 0.0),
    ],
)
def test_against_onnxruntime(kind: ActivationKind, node: str, alpha: float, beta: float) -> None:
    x = 3 * random((3, 5))
    (expected,) = onnx_node(node, [x])
    (y,) = run(ActivationOp, [x], kind=kind, alpha=alpha, beta=beta)
    assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float64", "bfloat16", "int8", "int32"])
def test_element_types(dtype: str) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = random((20,), dtype="int8").astype(kind)
    (y,) = run(ActivationOp, [x], kind=KIND.RELU)
    assert y.dtype == kind
    assert_array_equal(y.astype(np.float64), np.maximum(x.astype(np.float64), 0))


@pytest.mark.parametrize("kind", [KIND.SIGMOID, KIND.SOFTPLUS, KIND.MISH, KIND.ELU, KIND.GELU_TANH])
def test_large_inputs_do_not_overflow(kind: ActivationKind) -> None:
    with np.errstate(over="raise", invalid="raise"):
        (y,) = run(ActivationOp, [np.array([-1e4, 1e4], np.float32)], kind=kind, alpha=1.0, beta=1.0)
    assert np.isfinite(y).all()
