"""Running sums and products across memory: every kind and direction, any number of columns of any length."""

from __future__ import annotations

import pytest
from cumulative_layer import cumulative, kernels

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.simt import SharedOp


def shares(kernel: FuncOp) -> bool:
    return any(isinstance(op, SharedOp) for op in kernel.walk())


@pytest.mark.parametrize("element", ["f64", "f32", "f16", "i8", "ui8", "i64"])
@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
def test_kinds(kind: str, element: str, exclusive: bool, reverse: bool) -> None:
    for length in (64, 100):
        (kernel,) = kernels(cumulative(kind, (2, length, 24), element, 1, exclusive=exclusive, reverse=reverse))
        assert shares(kernel)


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("shape", [(64, 1), (65, 3), (70, 130), (3, 300, 2), (2, 257, 5, 7), (600, 33)])
def test_columns(shape: tuple[int, ...], element: str) -> None:
    axis = 0 if len(shape) == 2 else 1
    for reverse in (False, True):
        cumulative("sum", shape, element, axis, reverse=reverse, exclusive=reverse)


@pytest.mark.parametrize(("element", "wide"), [("f32", 4), ("f16", 4), ("f64", 2)])
def test_neighbours_are_loaded_together(element: str, wide: int) -> None:
    (kernel,) = kernels(cumulative("sum", (128, 64), element, 0))
    assert {len(op.offsets) for op in kernel.walk() if isinstance(op, LoadFragmentOp)} == {wide}


def test_short_columns_are_walked_along() -> None:
    (kernel,) = kernels(cumulative("sum", (3, 20, 8), "f32", 1))
    assert not shares(kernel)
