"""Normalisations, softmax and losses that are made of it."""

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
    "layer": (nn.LayerNorm([8, 10]), X),
    "root mean square": (nn.RMSNorm(10), X),
    "group": (nn.GroupNorm(3, 6), torch.randn(2, 6, 4)),
    "instance": (nn.InstanceNorm2d(3, affine=True), X),
    "instance stored": (nn.InstanceNorm2d(3, track_running_stats=True), X),
    "batch": (nn.BatchNorm2d(3), X),
    "batch of the data": (nn.BatchNorm2d(3, track_running_stats=False), X),
    "local response": (nn.LocalResponseNorm(2), X),
    "softmin": (nn.Softmin(1), X),
    "log softmax": (nn.LogSoftmax(1), X),
    "cross entropy": (nn.CrossEntropyLoss(), torch.randn(2, 5), torch.tensor([1, 2])),
    "divergence": (nn.KLDivLoss(reduction="batchmean"), V, V.softmax(-1)),
    "distance": (lambda x, y: (torch.dist(x, y), torch.dist(x, y[0], p=3), torch.dist(x, y, p=0)), V, V + 1),
    "huber": (nn.HuberLoss(), V, V + 1),
    "logits": (nn.BCEWithLogitsLoss(), V, V.sigmoid()),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)


def test_statistics_of_halves_are_halves() -> None:
    check(lambda x: torch.native_layer_norm(x, (6,), None, None, 1e-5), V.half(), tolerance=2e-3)
