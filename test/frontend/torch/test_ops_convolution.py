"""Convolutions of one to three axes."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import check  # noqa: E402

nn: Any = torch.nn
torch.manual_seed(0)
X = torch.randn(2, 3, 8, 10)
V = torch.randn(2, 5, 6)

CASES: dict[str, tuple[Any, ...]] = {
    "one axis": (nn.Conv1d(5, 4, 3), V),
    "two axes": (nn.Conv2d(3, 6, 3, stride=2, padding=1, groups=3), X),
    "three axes": (nn.Conv3d(2, 4, 2), torch.randn(1, 2, 4, 5, 6)),
    "same": (nn.Conv2d(3, 4, 3, padding="same", dilation=2), X),
    "reflected": (nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), X),
    "no batch": (nn.Conv2d(3, 4, 3), X[0]),
    "transposed": (nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1), X),
    "transposed 1-D": (nn.ConvTranspose1d(5, 4, 3, dilation=2), V),
    "weight norm": (nn.utils.parametrizations.weight_norm(nn.Conv2d(3, 4, 3)), X),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)
