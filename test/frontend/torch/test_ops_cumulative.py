"""Running maxima, minima and logarithms of sums, of lengths that are known and not."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import Function, assert_same, check  # noqa: E402

torch.manual_seed(0)
X = (torch.randn(2, 7, 3) * 3).round()
X[0, 2, 0] = float("nan")
X[1, :2, 1] = -float("inf")
X[1, 3, 1] = 100.0
N = torch.randint(-4, 4, (2, 7, 3))


def _extremes(x: Any) -> Any:
    return [(*x.cummax(axis), *x.cummin(axis)) for axis in (0, 1, -1)]


CASES: dict[str, tuple[Any, ...]] = {
    "real numbers": (_extremes, X.nan_to_num(0.0)),
    "integers": (_extremes, N),
    "truth values": (_extremes, N > 0),
    "one number": (_extremes, N[:, :1]),
    "logarithms": (lambda x: [x.logcumsumexp(axis) for axis in (0, 1, 2)], X.nan_to_num(0.0) * 20),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_function_is_right(case: str) -> None:
    function, *args = CASES[case]
    check(function, *args)


def test_not_a_number_stays() -> None:
    def function(x: Any) -> Any:
        values, places = x.cummax(1)
        return values.isnan(), places

    check(function, X)


def test_dynamic_lengths() -> None:
    def function(x: Any) -> Any:
        return (*x.cummax(1), *x.cummin(1), x.logcumsumexp(1))

    length = torch.export.Dim("length", min=2, max=40)
    engine = check(function, X.nan_to_num(0.0), dynamic_shapes=(({1: length},),))
    assert_same(engine, Function(function), (torch.randn(2, 11, 3),))
