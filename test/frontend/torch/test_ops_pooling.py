"""Windows that slide, and windows that share an axis."""

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
    "max": (nn.MaxPool2d(3, 2, 1, ceil_mode=True), X),
    "max with places": (nn.MaxPool2d(3, 2, 1, return_indices=True, ceil_mode=True), X),
    "max 1-D": (nn.MaxPool1d(2), V),
    "average": (nn.AvgPool2d(3, 2, 1, ceil_mode=True), X),
    "average inside": (nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False), X),
    "divisor": (nn.AvgPool2d(3, 2, 1, divisor_override=5), X),
    "divisor of integers": (nn.AvgPool2d(3, 2, 1, True, divisor_override=2), (9 * X).long()),
    "adaptive": (nn.AdaptiveAvgPool2d((3, 4)), X),
    "adaptive whole": (nn.AdaptiveAvgPool2d(1), X),
    "adaptive maximum": (nn.AdaptiveMaxPool2d((3, 4)), X),
    "area": (lambda x: F.interpolate(x, scale_factor=0.5, mode="area"), X),
    "fold": (nn.Fold((6, 6), (2, 2), stride=2), torch.randn(2, 12, 9)),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_module_is_right(case: str) -> None:
    module, *args = CASES[case]
    check(module, *args)


@pytest.mark.parametrize("target", ["reference", "cpu"])
@pytest.mark.parametrize("kind", [nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d])
def test_parts_of_a_dynamic_length(kind: Any, target: str) -> None:
    """Lengths that are no multiples of the parts, equal to them, and shorter than them."""
    height = torch.export.Dim("height", min=2, max=40)
    engine = check(kind((3, 5)), X, target=target, dynamic_shapes=({2: height},))
    for length in (2, 3, 7, 31):
        assert_same(engine, kind((3, 5)), (torch.randn(2, 3, length, 10),))


@pytest.mark.parametrize(("lead", "target"), [((2, 3), "cpu"), ((3,), "reference")])
def test_maxima_of_a_dynamic_length(lead: tuple[int, ...], target: str) -> None:
    """PyTorch's own tracing of max_pool1d fixes its length."""
    length = torch.export.Dim("length", min=4, max=40)
    pools = nn.Sequential(nn.MaxPool1d(3, 2, 1), nn.MaxPool1d([2], [1], dilation=2, padding=[1]))
    engine = check(pools, torch.randn(*lead, 13), target=target, dynamic_shapes=({len(lead): length},))
    for size in (4, 31):
        assert_same(engine, pools, (torch.randn(*lead, size),))


def test_tracing_leaves_pytorch_as_it_was() -> None:
    operators = torch.ops.aten.max_pool1d.default, torch.ops.aten.lstm.input
    before = [dict(one.py_kernels) for one in operators]
    check(nn.MaxPool1d(2), V)
    assert [dict(one.py_kernels) for one in operators] == before
