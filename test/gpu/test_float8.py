"""Products of 8-bit floats on a GPU: right sums, and the same bits in every run."""

from __future__ import annotations

import numpy as np
import pytest
from float8_models import float8_chain
from repeated_runs import differing_runs

import mlirt

pytestmark = pytest.mark.gpu


# An instruction adds 32 products to a sum, and keeps 13 bits behind the largest of them.
_DEPTH, _KEPT = 32, 2.0**-13


@pytest.mark.parametrize(("rows", "sizes"), [(64, [128, 64]), (70, [144, 88]), (300, [4096, 256])])
@pytest.mark.parametrize("per_column", [False, True])
def test_a_product(rows: int, sizes: list[int], per_column: bool) -> None:
    agree(rows, sizes, per_column, -(-sizes[0] // _DEPTH) * _KEPT)


@pytest.mark.parametrize("per_column", [False, True])
def test_products_that_are_rounded_in_between(per_column: bool) -> None:
    # What lies near the middle between two 8-bit floats may become the other one.
    agree(70, [144, 512, 88], per_column, 2e-2)


def agree(rows: int, sizes: list[int], per_column: bool, tolerance: float) -> None:
    model = float8_chain(rows, sizes, per_column=per_column)
    x = np.random.default_rng(1).standard_normal((rows, sizes[0]), np.float32)
    (want,) = mlirt.compile(model, "reference").run({"x": x}).values()
    engine = mlirt.compile(model, "cuda", heuristic=True)
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(found, want, atol=tolerance * float(np.abs(want).max()))
    assert differing_runs(engine, {"x": x}, 50) == []
