"""Tensors that are made from numbers."""

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

CASES: dict[str, tuple[Any, ...]] = {
    "made": (
        lambda x: (
            torch.arange(6) + x,
            torch.zeros_like(x),
            torch.full((2, 3), 7.0),
            torch.eye(3),
            torch.linspace(0, 1, 5),
            torch.ones(2, dtype=torch.int32),
            torch.arange(1, 2, 0.25),
        ),
        V,
    ),
    "triangles": (lambda x: (x.tril(), x.triu(1), torch.tril(torch.ones(4, 4))), V),
    "built in": (lambda x: (x, torch.tensor([1.0, 2.0]), 3, None, True), V),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)
