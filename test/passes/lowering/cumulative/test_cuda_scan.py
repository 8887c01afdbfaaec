"""Running sums and products by teams of threads: every kind and direction, rows of any length, any number of them."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import check_on_threads
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import LoadFragmentOp
from mlirt.dialects.kernel.simt import ShuffleOp

DTYPES = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "i8": np.int8, "ui8": np.uint8, "i64": np.int64}


def cumulative(
    kind: str, shape: tuple[int, ...], element: str, axis: int, *, exclusive: bool = False, reverse: bool = False
) -> ModuleOp:
    """Running sums or products, checked; returns the lowered network."""
    x = f"tensor<{'x'.join(map(str, shape))}x{element}>"
    text = f"""
    func.func @main(%x: {x} {{trt.name = "x"}}) -> ({x} {{trt.name = "y"}}) {{
      %y = fused.cumulative {kind} %x {{axis = {axis} : i64, exclusive = {str(exclusive).lower()},
          reverse = {str(reverse).lower()}}} : ({x}) -> {x}
      func.return %y : {x}
    }}"""
    random = np.random.default_rng(0)
    if kind == "prod" and element.startswith("f"):
        values = random.uniform(0.9, 1.1, shape)
    else:
        values = random.integers(0 if element == "ui8" else -9, 10, shape)
    return check_on_threads(text, {"x": values.astype(DTYPES[element])}, tolerance=2e-3)


def kernel(module: ModuleOp) -> FuncOp:
    (found,) = [op for op in module.ops if isinstance(op, FuncOp) and op.sym_name.data.startswith("cumulative")]
    return found


def exchanges(module: ModuleOp) -> bool:
    return any(isinstance(op, ShuffleOp) for op in kernel(module).walk())


@pytest.mark.parametrize("element", list(DTYPES))
@pytest.mark.parametrize("kind", ["sum", "prod"])
@pytest.mark.parametrize(("exclusive", "reverse"), [(False, False), (True, False), (False, True), (True, True)])
def test_kinds(kind: str, element: str, exclusive: bool, reverse: bool) -> None:
    for length in (40, 37):
        assert exchanges(cumulative(kind, (3, 5, length), element, 2, exclusive=exclusive, reverse=reverse))


@pytest.mark.parametrize("shape", [(2,), (9,), (33,), (1000,), (3, 1024), (7, 2, 130), (2, 4100), (1, 40001), (600, 3)])
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
