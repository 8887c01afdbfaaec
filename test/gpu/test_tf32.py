"""Convolutions whose floats the matrix units read with 10 bits of mantissa."""

from __future__ import annotations

import numpy as np
import pytest
from convolution_chain import chain
from one_tactic import Onlooker

import mlirt

pytestmark = pytest.mark.gpu

TOLERANCE = 3e-3  # of the largest value; three layers of roundings to 10 bits


@pytest.mark.parametrize("image", [(2, 64, 56, 54), (1, 72, 29, 27), (8, 128, 14, 14)])
def test_a_chain_of_convolutions(image: tuple[int, ...]) -> None:
    model, onlooker = chain(image, (128, 100, 64), {}), Onlooker()
    engine = mlirt.compile(model, "cuda", "tf32", algorithm_selector=onlooker, heuristic=True)
    assert any(name.startswith("cuda_wgmma") for name in onlooker.taken)
    x = np.random.default_rng(1).standard_normal(image, np.float32)
    (want,) = mlirt.compile(model, "reference").run({"x": x}).values()
    (found,) = engine.run({"x": x}).values()
    np.testing.assert_allclose(found, want, rtol=0, atol=TOLERANCE * float(np.abs(want).max()))
    assert not np.array_equal(found, want)
    for _ in range(20):
        (again,) = engine.run({"x": x}).values()
        assert again.tobytes() == found.tobytes()
