"""Operators of two tensors or numbers, with promotion of types."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

torch.manual_seed(0)
V = torch.randn(2, 5, 6)
N = torch.randint(0, 5, (2, 4))

CASES: dict[str, tuple[Any, ...]] = {
    "integers": (lambda x: (x // 2, x % 3, x / 2, x & 1, x << 1, -x, x == 2, x != 2, x.abs(), x * 2 + 1), N),
    "mixed types": (lambda x, y: (x + y, x * y, x > y, x / y, torch.pow(y, x), x - 1.5, 2**x), N, torch.rand(2, 4) + 1),
    "remainders": (lambda x: (x % 0.7, torch.fmod(x, 0.7), torch.remainder(x, -0.7)), V),
    "rounded quotients": (
        lambda x: (torch.div(x, 0.3, rounding_mode="floor"), torch.div(x, 0.3, rounding_mode="trunc")),
        V,
    ),
    "booleans": (
        lambda x: (
            (x > 0) & (x < 1),
            (x > 0) | (x < 1),
            ~(x > 0),
            (x > 0) ^ (x < 1),
            (x > 0).float(),
            x.logical_and(x > 0),
            x.bool(),
        ),
        V,
    ),
    "powers": (lambda x: (x**2, x**3, x.abs() ** 0.5, x**-1, x**1, x.abs() ** 2.3, 2.0**x), V),
    "alpha": (lambda x: (torch.add(x, x, alpha=2), torch.sub(x, x * x, alpha=0.5), torch.rsub(x, 1.0)), V),
    "clamp": (lambda x: (x.clamp(0, 1), x.clamp(min=0), x.clamp(max=x.mean()), torch.maximum(x, -x)), V),
    "numbers before others": (
        lambda x: (torch.fmax(x, torch.where(x > 0, x + 1, torch.nan)), torch.fmin(x * torch.nan, x)),
        V,
    ),
    "where": (lambda x: (torch.where(x > 0, x, 0.5), torch.where(x > 0, x, x * 2)), V),
    "angles": (lambda x: torch.atan2(x, x.flip(0)), V),
    "composed": (
        lambda x: (torch.lerp(x, x + 1, 0.3), torch.addcmul(x, x, x, value=2), torch.addcdiv(x, x, x.abs() + 1)),
        V,
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)
