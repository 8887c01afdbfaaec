"""Running sums and products by teams of threads: every kind and direction, rows of any length, any number of them."""

from __future__ import annotations

import pytest
from cumulative_layer import DTYPES, cumulative, kernels
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.simt import ShuffleOp
from mlirt.kernels.rows.cuda import scan as cuda_scan


def kernel(module: ModuleOp) -> FuncOp:
    (found,) = kernels(module)
    return found


def exchanges(module: ModuleOp) -> bool:
    return any(isinstance(op, ShuffleOp) for op in kernel(module).walk())


@pytest.mark.parametrize("element", list(DTYPES))
@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
def test_kinds(kind: str, element: str, exclusive: bool, reverse: bool) -> None:
    for length in (40, 37):
        assert exchanges(cumulative(kind, (3, 5, length), element, 2, exclusive=exclusive, reverse=reverse))


@pytest.mark.parametrize(
    "shape", [(2,), (9,), (33,), (1000,), (3, 1024), (7, 2, 130), (2, 4100), (200, 4100), (600, 3)]
)
@pytest.mark.parametrize("element", ["f16", "f32"])
def test_lengths(shape: tuple[int, ...], element: str) -> None:
    for reverse in (False, True):
        cumulative("sum", shape, element, len(shape) - 1, reverse=reverse, exclusive=reverse)


def test_many_rows_are_read_16_bytes_at_a_time() -> None:
    found = kernel(cumulative("sum", (600, 512), "f16", 1))
    assert {(len(op.offsets), bool(op.wide.value.data)) for op in found.walk() if isinstance(op, LoadFragmentOp)} == {
        (8, True)
    }


def test_other_axes_are_walked_along() -> None:
    assert not exchanges(cumulative("sum", (3, 20, 8), "f32", 1))


@pytest.mark.parametrize(("rows", "length"), [(1, 17000), (2, 20011), (1, 40001), (3, 33000)])
@pytest.mark.parametrize("element", ["f32", "f16", "i64"])
def test_parts_of_long_rows(element: str, rows: int, length: int) -> None:
    """One launch finds what each part comes to, the other one begins with that."""
    for reverse in (False, True):
        module = cumulative("sum", (rows, length), element, 1, reverse=reverse, exclusive=reverse)
        assert len(kernels(module)) == (1 if element == "f16" and length < 3 * 8192 else 2)


def test_parts_of_several_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are longer than all blocks hold at a time."""
    monkeypatch.setattr(cuda_scan, "_BLOCKS", 6)
    assert len(kernels(cumulative("sum", (1, 60001), "f32", 1))) == 2
    assert len(kernels(cumulative("prod", (1, 60001), "f64", 1))) == 2
