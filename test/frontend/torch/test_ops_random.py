"""Random numbers are other ones in each run, with the mean and deviation that the operator has."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import Function  # noqa: E402

import mlirt  # noqa: E402


def test_each_run_draws_anew() -> None:
    x = torch.zeros(64, 64)
    module = Function(lambda x: (x + torch.randn(64, 64), torch.rand_like(x)))
    engine: Any = mlirt.compile(module, (x,), target="reference")
    normal, uniform = engine(x)
    assert not torch.equal(engine(x)[0], normal)
    assert abs(float(normal.mean())) < 0.1
    assert abs(float(normal.std()) - 1) < 0.1
    assert abs(float(uniform.mean()) - 0.5) < 0.05
    assert 0 <= float(uniform.min()) <= float(uniform.max()) <= 1


def test_permutations_have_each_number_once() -> None:
    x = torch.zeros(200)
    engine: Any = mlirt.compile(Function(lambda x: torch.randperm(200) + x.long()), (x,), target="reference")
    one, two = engine(x), engine(x)
    assert not torch.equal(one, two)
    assert torch.equal(one.sort().values, torch.arange(200))


def test_numbers_from_a_range_and_coins() -> None:
    def function(x: Any) -> Any:
        return (
            torch.randint(3, 7, (64, 64)) + x.long(),
            torch.bernoulli(x + 0.25),
            torch.normal(x + 5, 2.0),
        )

    engine: Any = mlirt.compile(Function(function), (torch.zeros(64, 64),), target="reference")
    whole, coins, normal = engine(torch.zeros(64, 64))
    assert whole.unique().tolist() == [3, 4, 5, 6]
    assert abs(float(whole.double().mean()) - 4.5) < 0.1
    assert coins.unique().tolist() == [0.0, 1.0]
    assert abs(float(coins.mean()) - 0.25) < 0.05
    assert abs(float(normal.mean()) - 5) < 0.2
    assert abs(float(normal.std()) - 2) < 0.2
