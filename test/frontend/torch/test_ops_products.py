"""Products and attention."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false
# pyright: reportUntypedBaseClass=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

import mlirt  # noqa: E402

nn: Any = torch.nn
F: Any = torch.nn.functional
torch.manual_seed(0)
V = torch.randn(2, 5, 6)

CASES: dict[str, tuple[Any, ...]] = {
    "products": (
        lambda x, y: (
            x @ y.mT,
            x @ y[0, 0],
            x[0] @ y[1].T,
            torch.dot(x[0, 0], y[0, 0]),
            torch.mv(x[0], y[0, 0]),
            torch.outer(x[0, 0], y[0, 1]),
        ),
        V,
        V + 1,
    ),
    "with a sum": (
        lambda x, y: (torch.addmm(x[0] @ y[1].T, x[0], y[1].T, beta=0.5, alpha=2), torch.baddbmm(x @ y.mT, x, y.mT)),
        V,
        V + 1,
    ),
    "bilinear": (nn.Bilinear(6, 6, 4), V, V + 1),
    "einsum": (lambda x, y: torch.einsum("bij,bkj->bik", x, y), V, V + 1),
    "distances of pairs": (
        lambda x: [F.pdist(x[0], p) for p in (0.0, 1.0, 2.0, 3.0, float("inf"))],
        V.round(),
    ),
    "distances by other norms": (lambda x: (torch.cdist(x, x + 1, p=3), torch.cdist(x, x.round(), p=0)), V.round()),
    "distances": (lambda x: (torch.cdist(x, x + 1), torch.cdist(x, x + 1, p=1)), V),
    "linear": (nn.Linear(6, 4), V),
    "linear of a vector": (nn.Linear(6, 4), V[0, 0]),
    "half": (nn.Linear(6, 4).double(), V.double()),
    "causal": (lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), torch.randn(2, 3, 5, 8)),
    "masked": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
        torch.randn(2, 3, 5, 8),
        torch.rand(5, 5) > 0.3,
    ),
    "masked whole rows": (
        lambda q, m: F.scaled_dot_product_attention(q, q, q, attn_mask=m),
        torch.randn(2, 3, 5, 8),
        torch.arange(5)[:, None].expand(5, 5) > 1,
    ),
    "shared heads": (
        lambda q, k: F.scaled_dot_product_attention(q, k, k, enable_gqa=True),
        torch.randn(2, 4, 5, 8),
        torch.randn(2, 2, 5, 8),
    ),
    "heads": (nn.MultiheadAttention(6, 2, batch_first=True), V, V, V),
    "encoder": (nn.TransformerEncoderLayer(6, 2, 12, batch_first=True), V),
    "transformer": (nn.Transformer(6, 2, 1, 1, 12, batch_first=True), V, V),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)


class Added(torch.nn.Module):
    """The sum of a batch of products."""

    def forward(self, x: Any, a: Any, b: Any) -> Any:
        """[n, m], [batch, n, k], [batch, k, m] to [n, m]."""
        return torch.addbmm(x, a, b)


def test_sums_of_products_of_halves_are_rounded_once() -> None:
    """Products that cancel each other: rounded before they are added up, little but roundings is left of them."""
    a, b = torch.randn(8, 4, 5).half() * 30, torch.randn(8, 5, 6).half() * 30
    a, b, nothing = torch.cat([a, -a * 0.99]), torch.cat([b, b]), torch.zeros(4, 6).half()
    engine: Any = mlirt.compile(Added(), (nothing, a, b), target="reference")
    exact = torch.bmm(a.double(), b.double()).sum(0)
    bound = exact.abs().max() * 2**-11
    assert (torch.bmm(a, b).double().sum(0) - exact).abs().max() > 2 * bound
    assert (engine(nothing, a, b).double() - exact).abs().max() <= bound
