"""Mean and squared deviations of long rows by sums from a number near the mean, in one pass over the row."""

from __future__ import annotations

from typing import Any

import gpu_kernels
import numpy as np
import pytest
from gpu_kernels import check_on_threads
from lowered_network import parse_module
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.fused.normalization import NormalizationOp
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.symbolic import sym
from mlirt.kernels.rows.one_pass import PARTS, reads_once

ROWS, LENGTH = 3, 1 << 20
EPSILON = 1e-5


def _text(rows: int, length: int, mean: str = "divf", deviation: str = "subf %28, %29") -> str:
    """Rows less their mean, over their standard deviation."""
    type_, divisor = f"tensor<{rows}x{length}xf32>", f"{length if mean == 'divf' else 1 / length:.17e}"
    return f"""
    func.func @main(%x: {type_} {{trt.name = "x"}}) -> ({type_} {{trt.name = "y"}}) {{
      %y = fused.normalization %x {{access = [#fused.access<["d0", "d1"]>], axes = array<i64: 1>,
          kinds = [#fused<reduction_kind add>, #fused<reduction_kind add>]}} : ({type_}) -> {type_} {{
      ^bb0(%17: f32, %18: f32, %19: f32):
        %20 = arith.subf %17, %18 : f32
        %21 = arith.mulf %20, %19 : f32
        fused.yield %21 : f32
      }} {{
      ^bb0(%23: f32):
        fused.yield %23 : f32
      }} {{
      ^bb0(%24: f32, %25: f32):
        %26 = arith.constant {divisor} : f32
        %27 = arith.{mean} %24, %26 : f32
        fused.yield %27 : f32
      }} {{
      ^bb0(%28: f32, %29: f32):
        %30 = arith.{deviation} : f32
        %31 = arith.mulf %30, %30 : f32
        fused.yield %31 : f32
      }} {{
      ^bb0(%32: f32, %33: f32, %34: f32):
        %35 = arith.constant {length:.1f} : f32
        %36 = arith.divf %32, %35 : f32
        %37 = arith.constant {EPSILON:e} : f32
        %38 = arith.addf %36, %37 : f32
        %39 = math.sqrt %38 : f32
        %40 = arith.constant 1.0 : f32
        %41 = arith.divf %40, %39 : f32
        fused.yield %41 : f32
      }}
      func.return %y : {type_}
    }}"""


@pytest.fixture(autouse=True)
def _few_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few that no row is held by the threads of a cluster; these rows are too long for its shared memory, too."""
    monkeypatch.setattr(gpu_kernels, "DEVICE", "h200+processors=2")


def _most_carried(module: ModuleOp) -> int:
    """How many numbers a loop carries at most."""
    (function,) = [op for op in module.ops if isinstance(op, FuncOp)]
    return max(len(op.results) for op in function.walk() if isinstance(op, scf.ForOp))


def _rows(kind: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    x = np.random.default_rng(0).standard_normal((ROWS, LENGTH), np.float32)
    if kind == "far from zero":
        x += 1000
    elif kind == "an outlier in front":
        x[:, 0] = 1e4
    elif kind == "all of it in front":
        x[:, LENGTH // PARTS :] = 0
    elif kind == "one number":
        x[:] = 0.1
    return x


@pytest.mark.parametrize("mean", ["divf", "mulf"])
@pytest.mark.parametrize(
    "kind", ["near zero", "far from zero", "an outlier in front", "all of it in front", "one number"]
)
def test_rows_that_no_block_holds_are_read_twice_and_a_part_once(kind: str, mean: str) -> None:
    x = _rows(kind)
    module = check_on_threads(_text(ROWS, LENGTH, mean), {"x": x}, tolerance=2e-4 if kind == "far from zero" else 2e-5)
    assert _most_carried(module) == 8  # two sums of vectors of four


def test_rows_with_infinity_are_not_numbers() -> None:
    x = _rows("near zero")
    x[1, 7] = np.inf
    check_on_threads(_text(ROWS, LENGTH), {"x": x}, tolerance=2e-5)


@pytest.mark.parametrize(
    ("length", "mean", "deviation", "is_known"),
    [
        (LENGTH, "divf", "subf %28, %29", True),
        (LENGTH, "mulf", "subf %28, %29", True),
        (LENGTH, "divf", "addf %28, %29", False),
        (LENGTH, "divf", "subf %29, %28", False),
        (LENGTH, "addf", "subf %28, %29", False),
        (LENGTH + 4, "divf", "subf %28, %29", False),
        (1 << 15, "divf", "subf %28, %29", False),
    ],
)
def test_which_stages_are_a_mean_and_deviations(length: int, mean: str, deviation: str, is_known: bool) -> None:
    module, _ = parse_module(_text(2, length, mean, deviation))
    (op,) = [op for op in module.walk() if isinstance(op, NormalizationOp)]
    assert reads_once(op, [length]) == is_known
    assert not reads_once(op, [length // 2])
    assert not reads_once(op, [sym("n")])
