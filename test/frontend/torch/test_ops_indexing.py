"""Reads and writes at indices."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

nn: Any = torch.nn
F: Any = torch.nn.functional
torch.manual_seed(0)
V = torch.randn(2, 5, 6)
N = torch.randint(0, 5, (2, 4))

P = torch.tensor([0, 2, -1])
M = torch.randn(6, 4)

CASES: dict[str, tuple[Any, ...]] = {
    "embedding": (nn.Embedding(5, 6), N),
    "bag of means": (nn.EmbeddingBag(5, 6, mode="mean"), N),
    "bag of sums": (nn.EmbeddingBag(5, 6, mode="sum"), N),
    "bags of maxima": (nn.EmbeddingBag(5, 6, mode="max", padding_idx=2), N),
    "bags with padding": (
        lambda i, w: [
            F.embedding_bag(i.flatten(), w, torch.tensor([0, 3, 3]), mode=mode, padding_idx=1)
            for mode in ("sum", "mean", "max")
        ],
        N,
        torch.randn(5, 6),
    ),
    "one axis": (lambda x, i: (x[:, i], x[i], x.index_select(1, i + 1)), torch.randn(4, 5, 6), P),
    "axes apart": (lambda x, i: x[i, :, i], V[:, :3], torch.tensor([0, 1, -1])),
    "axes together": (lambda x, i: (x[:, i, i], x[:, i[:, None], i]), V, P),
    "written": (lambda x, i: torch.index_put(x, (i,), x[:3] * 2), M, P),
    "reduced along an axis": (
        lambda x, i: [
            x.index_reduce(0, i, x[:3] * 2, kind, include_self=own)
            for kind in ("prod", "mean", "amax", "amin")
            for own in (True, False)
        ],
        M,
        torch.tensor([0, 2, 2]),
    ),
    "put": (
        lambda x, i: (x.put(i, x[0, :3] * 2), torch.ones_like(x).put(i, x[0, :3], accumulate=True)),
        M,
        torch.tensor([1, -2, 7]),
    ),
    "one number": (
        lambda x, i: (
            x.sum().index_add(0, i, x[0, 0]),
            x.sum().index_copy(0, i, x[0, :1]),
            x[0, 0].masked_scatter(x > 0, x),
        ),
        M,
        torch.tensor([0]),
    ),
    "added": (lambda x, i: torch.index_put(x, (i,), x[:3] * 2, accumulate=True), M, torch.tensor([0, 2, 2])),
    "written by mask": (lambda x: torch.index_put(x, (x > 0,), torch.tensor(7.0)), M),
    "scattered": (
        lambda x, i: (
            x.scatter(1, i, 2.5),
            x.scatter_add(1, i, x),
            x.gather(1, i),
            torch.take_along_dim(x, i, 1),
            torch.zeros_like(x).scatter_reduce(1, i, x, "amax"),
        ),
        torch.randn(2, 5),
        N,
    ),
    "reduced where they meet": (
        lambda x, i: [
            y.scatter_reduce(1, i, y + 1, kind, include_self=own)
            for y in (x, (x * 4).int())
            for kind in ("sum", "prod", "mean", "amax", "amin")
            for own in (True, False)
        ],
        torch.randn(2, 5),
        N,
    ),
    "reduced as PyTorch did first": (
        lambda x, i: (
            x.scatter(1, i, x + 1, reduce="add"),
            x.scatter(1, i, x + 1, reduce="multiply"),
            x.scatter(1, i, 2.5, reduce="multiply"),
        ),
        torch.randn(2, 5),
        N,
    ),
    "along an axis": (
        lambda x, i: (x.index_add(0, i, x[:3]), x.index_copy(0, i, x[:3] * 2)),
        M,
        torch.tensor([0, 2, 1]),
    ),
    "mask": (lambda x: (x[x > 0], torch.masked_select(x, x > 0.5) * 2), V),
    "nonzero": (lambda x: (x > 0).nonzero(), V),
    "where": (lambda x: torch.where(x > 0), V),
    "one hot": (lambda i: F.one_hot(i, 7), N),
    "masked fill": (lambda x: x.masked_fill(x > 0, -1.0), V),
    "masked scatter": (lambda x: x.masked_scatter(x > 0, x * 2), V),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)
