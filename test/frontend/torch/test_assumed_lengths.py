"""Lengths for which a module was not traced are refused; what PyTorch's own exported program takes is taken."""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch", reason="PyTorch is not installed: make test-torch")

from torch_checks import Function, assert_same  # noqa: E402

import mlirt  # noqa: E402
from mlirt.errors import MlirtError  # noqa: E402

DYNAMIC = torch.export.Dim.DYNAMIC


def by_length(holds: Callable[[int], bool]) -> Any:
    """A module that computes one thing for some lengths and another one for the others."""
    return Function(lambda x: x * 2 if holds(x.shape[0]) else x * 3).eval()


def engine_of(module: Any, count: int, **options: Any) -> Any:
    return mlirt.compile(module, (torch.randn(count, 4),), dynamic_shapes=(({0: DYNAMIC},),), **options)


@pytest.mark.parametrize(
    ("holds", "taken", "refused"),
    [
        (lambda n: n > 4, (5, 6, 9), (2, 4)),
        (lambda n: n <= 7, (3, 6, 7), (8, 9)),
        (lambda n: n != 9, (6, 8, 10), (9,)),
        (lambda n: n % 2 == 0, (4, 6, 8), (5, 7)),
        (lambda n: n % 4 != 1, (6, 7, 8), (5, 9)),
    ],
    ids=["above", "at most", "other", "even", "another remainder"],
)
def test_branches_on_a_length(holds: Callable[[int], bool], taken: tuple[int, ...], refused: tuple[int, ...]) -> None:
    module = by_length(holds)
    engine = engine_of(module, 6, target="reference")
    for count in taken:
        assert_same(engine, module, (torch.randn(count, 4),))
    for count in refused:
        with pytest.raises(MlirtError, match="exported for"):
            engine(torch.randn(count, 4))


def test_a_saved_plan_refuses_them_as_well(tmp_path: Path) -> None:
    engine_of(by_length(lambda n: n > 4), 6, target="cpu").save(tmp_path / "branch.plan")
    engine = mlirt.load(tmp_path / "branch.plan")
    (name,) = (one.name for one in engine.inputs)
    assert engine.run({name: torch.ones(5, 4).numpy()})["output"][0, 0] == 2
    with pytest.raises(MlirtError, match="no less than 5"):
        engine.run({name: torch.ones(3, 4).numpy()})


def test_the_range_of_a_dimension_is_kept() -> None:
    module = torch.nn.Linear(4, 3).eval()
    shapes = ({0: torch.export.Dim("batch", min=1, max=8)},)
    engine: Any = mlirt.compile(module, (torch.randn(2, 4),), target="reference", dynamic_shapes=shapes)
    for count in (1, 8):
        assert_same(engine, module, (torch.randn(count, 4),))
    with pytest.raises(MlirtError, match="batch is 9, but the module was exported for no more than 8"):
        engine(torch.randn(9, 4))


def test_what_pytorch_cannot_prove_of_a_range_is_checked_in_each_run() -> None:
    """PyTorch does not see that 2 * (n // 2) is at most n; the names and ranges of the dimensions stay."""
    module = torch.nn.MaxPool2d(3, 2, 1, ceil_mode=True)
    batch, length = torch.export.Dim("batch", min=1, max=8), torch.export.Dim("length", min=8, max=40)
    engine: Any = mlirt.compile(
        module, (torch.randn(2, 4, 13, 9),), target="reference", dynamic_shapes=({0: batch, 2: length},)
    )
    assert engine.inputs[0].shape == ("batch", 4, "length", 9)
    for sizes in ((1, 8), (3, 21), (8, 40)):
        assert_same(engine, module, (torch.randn(sizes[0], 4, sizes[1], 9),))
    with pytest.raises(MlirtError, match="length is 41, but the module was exported for no more than 40"):
        engine(torch.randn(1, 4, 41, 9))


def test_the_least_that_pytorch_assumes_is_not_asked_for_in_other_words() -> None:
    """A bag counts as many as ceil(batch * length / length), of which PyTorch keeps that they are at least 2."""
    module = torch.nn.EmbeddingBag(20, 6, mode="max").eval()
    example = (torch.randint(0, 20, (3, 5)),)
    batch, length = torch.export.Dim("batch", min=1, max=64), torch.export.Dim("length", min=1, max=64)
    engine: Any = mlirt.compile(module, example, target="reference", dynamic_shapes=({0: batch, 1: length},))
    for sizes in ((1, 5), (4, 2), (1, 1)):
        assert_same(engine, module, (torch.randint(0, 20, sizes),))


def test_a_length_that_is_a_constant_is_refused() -> None:
    module, length = Function(lambda x: x.reshape(-1, 4, 6) * 2).eval(), torch.export.Dim("length", min=2, max=9)
    with pytest.raises(MlirtError, match="cannot trace the module: Constraints violated"):
        mlirt.compile(module, (torch.randn(4, 6),), dynamic_shapes=(({1: length},),))
