"""Single precision on the matrix units: as accurate as multiply-adds, and the same for numbers that are not finite."""

from __future__ import annotations

import pytest
from exact_products import Products
from gpu_kernels import run_on_threads

from mlirt.kernels.lib.cuda.tiles.shape import SPLIT

TACTICS = (*(f"cuda_tiles:{shape.name}" for shape in SPLIT), "cuda_tiles:64x64bf16x6c2")


@pytest.mark.parametrize("tactic", TACTICS)
def test_products_count_all_bits(tactic: str) -> None:
    Products(run_on_threads, tactic).check_all(40, 48, 96)


@pytest.mark.parametrize("tactic", ["cuda_tiles:64x64", "cuda_tiles:64x64bf16x6"])
def test_sizes_that_fill_no_tile(tactic: str) -> None:
    """What multiply-adds keep, parts in bfloat16 keep as well."""
    Products(run_on_threads, tactic).check_all(37, 70, 51)
