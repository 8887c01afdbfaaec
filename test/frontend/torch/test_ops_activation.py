"""Activations and functions of one number."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

nn: Any = torch.nn
torch.manual_seed(0)
X = torch.randn(2, 3, 8, 10)
V = torch.randn(2, 5, 6)

CASES: dict[str, tuple[Any, ...]] = {
    "powers of two": (torch.exp2, V),
    "ELU": (nn.ELU(), X),
    "Hardshrink": (nn.Hardshrink(), X),
    "Hardsigmoid": (nn.Hardsigmoid(), X),
    "Hardtanh": (nn.Hardtanh(), X),
    "Hardswish": (nn.Hardswish(), X),
    "LeakyReLU": (nn.LeakyReLU(), X),
    "LogSigmoid": (nn.LogSigmoid(), X),
    "ReLU": (nn.ReLU(), X),
    "ReLU6": (nn.ReLU6(), X),
    "SELU": (nn.SELU(), X),
    "CELU": (nn.CELU(), X),
    "GELU": (nn.GELU(), X),
    "Sigmoid": (nn.Sigmoid(), X),
    "SiLU": (nn.SiLU(), X),
    "Mish": (nn.Mish(), X),
    "Softplus": (nn.Softplus(), X),
    "Softshrink": (nn.Softshrink(), X),
    "Softsign": (nn.Softsign(), X),
    "Tanh": (nn.Tanh(), X),
    "Tanhshrink": (nn.Tanhshrink(), X),
    "Softmax2d": (nn.Softmax2d(), X),
    "gelu tanh": (nn.GELU("tanh"), X),
    "threshold": (nn.Threshold(0.1, 20), X),
    "softplus": (nn.Softplus(beta=2, threshold=3), X),
    "prelu": (nn.PReLU(3), X),
    "glu": (nn.GLU(1), torch.randn(2, 4, 3)),
    "logarithms": (lambda x: (x.abs().log1p(), x.abs().log2(), x.abs().log10()), V),
    "small numbers": (lambda x: (x.log1p(), x.expm1()), V.abs() * 1e-5),
    "exponentials": (lambda x: (x.expm1(), x.abs().rsqrt(), x.square()), V * 5),
    "roundings": (lambda x: (x.trunc(), x.round(), x.frac(), x.ceil()), V * 3),
    "decimals": (lambda x: [torch.round(x, decimals=k) for k in (-2, -1, 0, 1, 3)], V * 100),
    "signs": (
        lambda x: (x.signbit(), (x * 0).signbit(), (x * 3).int().signbit(), (x > 0).signbit()),
        V,
    ),
    "dropout": (nn.Dropout(0.5), X),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)
