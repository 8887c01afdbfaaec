"""Products of 8-bit floats on a GPU: right sums, and the same bits in every run."""

from __future__ import annotations

import numpy as np
import pytest
from float8_models import float8_chain

import mlirt

pytestmark = pytest.mark.gpu


# The matrix units add up products of 8-bit floats with fewer bits than float32 has.
@pytest.mark.parametrize(
    ("rows", "sizes", "tolerance"),
    [(64, [128, 64], 1e-3), (70, [144, 88], 1e-3), (300, [4096, 256], 2e-3), (70, [144, 512, 88], 2e-2)],
)
@pytest.mark.parametrize("per_column", [False, True])
def test_a_chain_of_products(rows: int, sizes: list[int], tolerance: float, per_column: bool) -> None:
    model = float8_chain(rows, sizes, per_column=per_column)
    x = np.random.default_rng(1).standard_normal((rows, sizes[0]), np.float32)
    (want,) = mlirt.compile(model, "reference").run({"x": x}).values()
    engine = mlirt.compile(model, "cuda", heuristic=True)
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(found, want, atol=tolerance * float(np.abs(want).max()))
    for _ in range(50):
        (again,) = engine.run({"x": x}).values()
        assert again.tobytes() == found.tobytes()
