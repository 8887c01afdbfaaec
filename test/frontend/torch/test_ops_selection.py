"""Elements in order."""

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
X = torch.randn(2, 3, 8, 10)
V = torch.randn(2, 5, 6)
ROWS = (torch.randn(2, 5, 7) * 4).round() / 4  # some are equal

CASES: dict[str, tuple[Any, ...]] = {
    "sort": (lambda x: x.sort(-1, descending=True), X),
    "topk": (lambda x: (torch.topk(x, 3, 1), torch.topk(x, 2, largest=False)), V),
    "argsort": (lambda x: x.argsort(1), V),
    "the k-th": (lambda x: [*torch.kthvalue(x, 3, 1), *x[0, 0].kthvalue(2, keepdim=True)], V),
    "the middle": (
        lambda x: [x.median(), *x.median(1), *x[0, 0].sum().median(0), *x[:, :, :5].median(-1, keepdim=True)],
        V,
    ),
    "the middle with gaps": (
        lambda x: [x.median(), x.nanmedian(), *x[0].nanmedian(1), x[1].median(), *x[0].median(1), x[0, :1].nanmedian()],
        torch.tensor([[[math.nan] * 3, [1.0, 3.0, math.nan], [0.5, -2.0, 7.0]], [[5.0, 4.0, 3.0]] * 3]),
    ),
    "places in an order": (
        lambda rows, x: [
            torch.searchsorted(rows, x, right=right, out_int32=narrow)
            for right in (True, False)
            for narrow in (True, False)
        ],
        ROWS.sort(-1)[0],
        torch.cat([ROWS[..., :3], torch.full((2, 5, 1), torch.nan)], -1),
    ),
    "places in one order": (
        lambda row, x: (
            torch.searchsorted(row, x, side="right"),
            torch.searchsorted(row.flip(0), x, sorter=torch.arange(7).flip(0)),
            torch.searchsorted(row, 0.25),
            torch.bucketize(x, row),
            torch.bucketize(x, row, right=True),
            torch.bucketize((x * 2).int(), row),
        ),
        ROWS[0, 0].sort()[0],
        torch.cat([ROWS[0], ROWS[1]]),
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)
