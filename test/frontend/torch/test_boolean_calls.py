"""Operators on booleans whose layers take numbers."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

torch.manual_seed(0)
A, B = torch.rand(4, 5) > 0.5, torch.rand(4, 5) > 0.5
PLACES = torch.randint(0, 4, (4, 5))
SOURCE = torch.rand(4, 5) > 0.6

CASES: dict[str, tuple[Any, ...]] = {
    "bounds": (lambda a, b: (torch.clamp_max(a, b), torch.clamp_min(a, b)), A, B),
    "extremes": (lambda a, b: (torch.fmax(a, b), torch.fmin(a, b), a.sign()), A, B),
    "products": (lambda a: (a.prod(1, dtype=torch.bool), a.prod(dtype=torch.bool)), A | B),
    "added at places": (lambda a, p, s: a.scatter_add(0, p, s), A, PLACES, SOURCE),
    **{
        f"reduced at places, {kind}": (
            lambda a, p, s, kind=kind: a.scatter_reduce(0, p, s, kind), A, PLACES, SOURCE,
        )
        for kind in ("sum", "prod", "amin", "amax")
    },
    "rows added": (lambda a, p, s: a.index_add(0, p, s), A, PLACES[:, 0], SOURCE),
    "put": (
        lambda a, p, s: (a.index_put((p,), s, accumulate=True), a.index_put((p,), s)),
        A, torch.tensor([2, 0]), SOURCE[:2],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=str)
def test_function_is_right(case: str) -> None:
    function, *args = CASES[case]
    check(function, *args)
