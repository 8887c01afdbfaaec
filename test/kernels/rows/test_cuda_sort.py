"""Rows that a block sorts, on the interpreter of GPU kernels: the same elements in the same order as the reference."""

from __future__ import annotations

import numpy as np
import pytest
from gpu_kernels import lower_to_threads
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.kernels.rows.cuda import sort

WHERE = np.float32(np.nan), np.float32(np.inf), np.float32(-np.inf), np.float32(-0.0), np.float32(0.0)


def lowered(text: str) -> str:
    return str(lower_to_threads(*parse_module(text)))


@pytest.fixture
def any_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are sorted however quick the other ways are."""

    def endless(*_: object) -> float:
        return float("inf")

    monkeypatch.setattr(sort, "cycles_on_device", endless)


def network(element: str, shape: tuple[int, ...], axis: int, count: int, kind: str) -> str:
    sizes = "x".join(map(str, shape))
    found = "x".join(str(count if k == axis else size) for k, size in enumerate(shape))
    return f"""
    func.func @main(%x: tensor<{sizes}x{element}>) -> (tensor<{found}x{element}>, tensor<{found}xi64>) {{
      %v, %i = fused.topk {kind} %x {{axis = {axis} : i64}}
          : (tensor<{sizes}x{element}>) -> (tensor<{found}x{element}>, tensor<{found}xi64>)
      func.return %v, %i : tensor<{found}x{element}>, tensor<{found}xi64>
    }}
    """


@pytest.mark.parametrize("kind", ["max", "min"])
@pytest.mark.parametrize(
    ("element", "dtype"),
    [("f32", np.float32), ("f16", np.float16), ("i32", np.int32), ("i8", np.int8), ("ui8", np.uint8)],
)
@pytest.mark.parametrize(
    ("shape", "axis", "count"),
    [((3, 5, 70), 2, 70), ((2, 33, 4), 1, 7), ((5, 1), 1, 1), ((2, 2), 1, 2), ((64, 3), 0, 5), ((1, 1100), 1, 100)],
)
@pytest.mark.usefixtures("any_row")
def test_rows_are_sorted(
    kind: str, element: str, dtype: type[np.generic], shape: tuple[int, ...], axis: int, count: int
) -> None:
    """Many elements are equal; of equal ones the lower place comes first."""
    x = np.round(np.random.default_rng(1).standard_normal(shape) * 4).astype(np.float32)
    if element.startswith("f"):
        x.reshape(-1)[:: max(1, x.size // 17)][:5] = WHERE[: min(5, x.size)]
    else:
        x = np.abs(x) if element == "ui8" else x
    module, context = parse_module(network(element, shape, axis, count, kind))
    threads, feeds = lower_to_threads(module, context, "cuda_sort"), {"x": x.astype(dtype)}
    assert "%pairs" in str(threads)
    found = run_plan(threads, context, feeds)
    for name, right in interpret(module, context, feeds).items():
        np.testing.assert_array_equal(found[name], right, strict=True)


def test_rows_that_are_sorted_by_themselves() -> None:
    """Many large ones of some rows; the first of many short ones, and numbers of 64 bits, have other ways."""
    assert "%pairs" in lowered(network("f32", (16, 4000), 1, 1000, "max"))
    assert "%pairs" not in lowered(network("f32", (100_000, 6), 1, 1, "max"))
    assert "%pairs" not in lowered(network("i64", (16, 4000), 1, 1000, "max"))
