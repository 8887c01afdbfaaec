"""Resampled images."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownLambdaType=false, reportUnknownParameterType=false

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import assert_same, check  # noqa: E402

nn: Any = torch.nn
F: Any = torch.nn.functional
torch.manual_seed(0)
X = torch.randn(2, 3, 8, 10)
V = torch.randn(2, 5, 6)

CASES: dict[str, tuple[Any, ...]] = {
    "bilinear": (nn.Upsample(scale_factor=2.5, mode="bilinear"), X),
    "corners": (nn.Upsample(size=(5, 7), mode="bilinear", align_corners=True), X),
    "nearest": (nn.Upsample(scale_factor=1.7, mode="nearest"), X),
    "exact": (nn.Upsample(size=(11, 17), mode="nearest-exact"), X),
    "bicubic": (nn.Upsample(scale_factor=2, mode="bicubic"), X),
    "antialiased": (lambda x: F.interpolate(x, (3, 15), mode="bicubic", antialias=True), X),
    "antialiased, scale": (lambda x: F.interpolate(x, scale_factor=(0.3, 0.45), mode="bilinear", antialias=True), X),
    "antialiased, corners": (
        lambda x: F.interpolate(x, (5, 4), mode="bilinear", antialias=True, align_corners=True),
        X,
    ),
    "line": (nn.Upsample(scale_factor=2, mode="linear"), V),
    "grid": (
        lambda x, g: F.grid_sample(x, g, align_corners=False, padding_mode="border"),
        X,
        torch.rand(2, 4, 5, 2) * 2 - 1,
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)


def test_dynamic_lengths_times_a_float() -> None:
    """Half a sample is dropped, where the length is odd."""
    module, changes = nn.Upsample(scale_factor=(1.5, 0.75), mode="bilinear"), torch.export.Dim.DYNAMIC
    engine = check(module, X, dynamic_shapes=({2: changes, 3: changes},))
    for height, width in ((7, 9), (2, 31)):
        assert_same(engine, module, (torch.randn(2, 3, height, width),))
