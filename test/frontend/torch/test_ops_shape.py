"""Views, repetitions and orders of elements."""

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
X = torch.randn(2, 3, 8, 10)
V = torch.randn(2, 5, 6)

CASES: dict[str, tuple[Any, ...]] = {
    "views": (
        lambda x: (
            x.reshape(2, -1),
            x.transpose(0, 1).contiguous().view(-1),
            x.unsqueeze(1),
            x.squeeze(),
            x.unflatten(2, (2, 3)),
            x.flatten(1),
        ),
        V,
    ),
    "orders": (lambda x: (x.movedim(0, 2), x.swapaxes(0, 1), x.mT, x.permute(2, 0, 1), x.flip(1, 2)), V),
    "repetitions": (
        lambda x: (
            x.unsqueeze(1).expand(2, 3, 5, 6),
            x.repeat(1, 2, 1),
            x.repeat(2, 1, 1, 3),
            torch.repeat_interleave(x, 2, 1),
            torch.tile(x, (2,)),
        ),
        V,
    ),
    "rolls": (lambda x: (x.roll(2, 1), x.roll((1, -1), (0, 1)), x.roll(3)), V),
    "rolls of nothing": (lambda x: x.roll((-1, 2), (0, 1)), torch.randn(0, 5, 0)),
    "diagonals": (lambda x: (x.diagonal(0, 1, 2), torch.diag(x[0, 0]), x.diagonal(1), x.diagonal(-1, 1, 2)), V),
    "other diagonals": (
        lambda x: (
            torch.diagonal_scatter(x[0], x[0, :, 0], 1),
            torch.diagonal_scatter(x, x.diagonal(-1, 0, 2) * 2, -1, 0, 2),
            torch.as_strided_scatter(x, x[0, :2, :3], (2, 3), (7, 2), 1),
        ),
        V,
    ),
    "other sizes": (lambda x: ((x * 2).resize_(3, 4), (x * 2).resize_(2, 0), (x + 1).resize_(())), V),
    "blocks": (lambda x: F.pixel_shuffle(x, 2), torch.randn(2, 8, 3, 4)),
    "blocks back": (nn.PixelUnshuffle(2), X),
    "channel shuffle": (nn.ChannelShuffle(2), torch.randn(2, 6, 3, 3)),
    "copies": (
        lambda x: (
            torch.view_copy(x, (10, 6)),
            torch.permute_copy(x, (2, 0, 1)),
            torch.unbind_copy(x, 1),
            torch.transpose_copy(x, 0, 2),
            torch.unsqueeze_copy(x, 1),
            torch.expand_copy(x, (3, 2, 5, 6)),
            torch.select_copy(x, 1, 2),
            torch.slice_copy(x, 1, 1, 4),
            torch.split_copy(x, 2, 2),
            torch.alias_copy(x),
        ),
        V,
    ),
    "of no dimension": (lambda x: x.clone().resize_(()), V),
    "strides": (lambda x: x.as_strided((2, 2), (1, 2)), V),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)
