"""Special functions against PyTorch's, near 0, far out, and beyond where they are defined."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

import math
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

torch.manual_seed(0)
NEAR = torch.cat([torch.linspace(-4, 4, 41), torch.tensor([0.0, -0.0, 1e-6, math.inf, -math.inf, math.nan])])
PARTS = torch.cat([torch.linspace(-1, 1, 21), torch.tensor([1e-6, -1e-6, 0.99999, 1.5, math.nan])])
POSITIVE = torch.cat([torch.logspace(-2, 4, 40), torch.tensor([0.5, 1.0, 2.0])])
BETWEEN = torch.tensor([-0.3, -1.7, -6.2, -12.4, -20.6, 0.1, 0.4])
FAR = torch.cat([torch.linspace(-60, 60, 31), torch.tensor([19.9, 20.1, 0.0])])
SOME = torch.tensor([0.0, -0.0, 3.0, -4.0, math.inf, -math.inf, math.nan, 1e-30])

CASES: dict[str, tuple[Any, ...]] = {
    "complement of erf": (torch.erfc, NEAR),
    "small complements": (lambda x: torch.erfc(x) * torch.exp(x * x), torch.linspace(0, 8, 17)),
    "scaled complement": (torch.special.erfcx, torch.linspace(-4, 50, 30)),
    "log of the normal distribution": (torch.special.log_ndtr, torch.linspace(-30, 5, 30)),
    "inverse of erf": (torch.erfinv, PARTS),
    "normal quantiles": (torch.special.ndtri, torch.tensor([1e-7, 0.01, 0.2, 0.5, 0.9, 0.999, 0.0, 1.0])),
    "gamma": (lambda x: (torch.lgamma(x), torch.digamma(x)), POSITIVE),
    "gamma below 0": (lambda x: (torch.lgamma(x), torch.digamma(x)), BETWEEN),
    "gamma of whole numbers": (lambda x: (torch.lgamma(x), torch.digamma(x)), torch.tensor([0.0, -1.0, -3.0, 1.0])),
    "polygamma": (lambda x: [torch.polygamma(n, x) for n in (1, 2, 3)], POSITIVE[12:]),
    "trigamma below 0": (lambda x: torch.polygamma(1, x), BETWEEN),
    "multivariate gamma": (lambda x: torch.mvlgamma(x, 3), POSITIVE[20:]),
    "modified Bessel": (lambda x: (torch.i0(x), torch.special.i1(x)), torch.linspace(-8, 8, 17)),
    "scaled modified Bessel": (lambda x: (torch.special.i0e(x), torch.special.i1e(x)), FAR),
    "spherical Bessel": (torch.special.spherical_bessel_j0, torch.linspace(-9, 9, 19)),
    "hypotenuse": (torch.hypot, SOME, torch.tensor([4.0, 0.0, 4.0, 3.0, 1.0, math.nan, 1.0, 1e-30])),
    "signs": (lambda x, y: (torch.copysign(x, y), torch.copysign(x, -2.0)), SOME, SOME.roll(1)),
    "powers of two": (torch.ldexp, torch.randn(3, 4), torch.arange(-2, 2)),
    "mantissas": (torch.frexp, torch.tensor([1.0, 0.5, 0.75, -8.0, 1e-20, 3e20, 0.0, 7.99])),
    "angles": (torch.angle, SOME),
    "whole numbers": (lambda x: (torch.lgamma(x), torch.erfc(x), torch.angle(x)), torch.arange(1, 6)),
}


@pytest.mark.parametrize("name", list(CASES))
def test_function_is_right(name: str) -> None:
    function, *inputs = CASES[name]
    check(function, *inputs, tolerance=2e-5)


@pytest.mark.parametrize("name", ["complement of erf", "inverse of erf", "gamma below 0", "scaled modified Bessel"])
def test_compiled_function_is_right(name: str) -> None:
    function, *inputs = CASES[name]
    check(function, *inputs, target="cpu", tolerance=2e-5)


def test_doubles_keep_their_digits() -> None:
    x = torch.linspace(0.6, 9, 25, dtype=torch.float64)
    check(lambda x: (torch.lgamma(x), torch.digamma(x), torch.erfc(x), torch.special.i0e(x)), x, tolerance=1e-9)
