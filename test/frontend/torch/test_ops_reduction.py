"""Sums, means, extremes, variances, running sums."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

F: Any = torch.nn.functional
torch.manual_seed(0)
V = torch.randn(2, 5, 6)
N = torch.randint(0, 5, (2, 4))

CASES: dict[str, tuple[Any, ...]] = {
    "sums": (
        lambda x: (
            x.sum(),
            x.mean(1),
            x.sum((0, 2), keepdim=True),
            x.prod(1),
            x.amax(1),
            x.amin((0, 1)),
            x.max(),
            x.min(),
        ),
        V,
    ),
    "integers": (lambda x: (x.sum(), x.float().mean(), x.max(), x.prod(1), x.amax(0), x.cumsum(1)), N),
    "booleans": (lambda x: ((x > 0).any(), (x > 0).all(1), (x > 0).sum(), (x > 0).any(1, keepdim=True)), V),
    "moments": (lambda x: (x.std(1), x.var((0, 2), unbiased=False), x.var(), torch.var_mean(x, 1)), V),
    "norms": (
        lambda x: (
            x.norm(),
            torch.linalg.norm(x, dim=1),
            x.norm(p=1, dim=2),
            x.norm(p=3, dim=1),
            F.normalize(x, dim=1),
        ),
        V,
    ),
    "extremes": (lambda x: (x.max(1), x.min(2, keepdim=True), x.argmax(1), x.argmin(), x.argmax(-1, keepdim=True)), V),
    "extremes without places": (lambda x: (x.max(1)[0], x.min(2, keepdim=True)[0], (x > 0).min(1).values), V),
    "extremes of what is no number": (lambda x: (x.log().min(1)[0], x.log().max(2)[0]), V),
    "running": (lambda x: (x.cumsum(1), x.cumprod(2), x.flip(1).cumsum(1).flip(1)), V),
    "no dimensions": (
        lambda x: (
            x.amax(0),
            x.sum(-1, keepdim=True),
            (x > 0).all(0),
            x.logsumexp(0),
            torch.linalg.vector_norm(x, dim=0),
            x.gather(0, torch.tensor([0])),
        ),
        V[0, 0, 0],
    ),
    "logsumexp of integers": (lambda x: x.logsumexp(1), N),
    "logsumexp": (lambda x: (x.logsumexp(1), x.logsumexp((0, 2), keepdim=True)), V),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)


@pytest.mark.parametrize("axis", [0, 1])
def test_running_sums_are_rounded_once_on_a_cpu(axis: int) -> None:
    """As PyTorch's are: a chain of additions in float32 is 20 to 60 times as far away."""
    x = torch.randn(512, 700)
    engine = check(lambda x: x.cumsum(axis), x, target="cpu", tolerance=1e-4)
    exact = x.double().cumsum(axis)
    assert (engine(x) - exact).abs().max() <= exact.abs().max() * 2**-23
