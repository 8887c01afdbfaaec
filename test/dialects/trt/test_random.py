"""Random numbers (tensorrt-features.md#1.11b)."""

from __future__ import annotations

import numpy as np
import pytest
from trt_layers import run

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.trt.random import RandomKind, RandomOp
from mlirt.dialects.trt.run_number import RunNumberOp, run_number

FIRST, DIMS = np.array(0), DimsAttr.of([50, 40])


@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
def test_uniform_1_11b(dtype: str) -> None:
    (y,) = run(
        RandomOp, [FIRST, None, np.array(-1, dtype), np.array(3, dtype)], kind=RandomKind.UNIFORM, output_dims=DIMS
    )
    assert (y.dtype, y.shape) == (dtype, (50, 40))
    assert -1 <= y.min() < -0.9
    assert 2.9 < y.max() <= 3


def test_normal_1_11b() -> None:
    scales = [np.array(number, np.float32) for number in (5, 0.5)]
    (y,) = run(RandomOp, [FIRST, np.array([50, 40]), *scales], kind=RandomKind.NORMAL)
    assert abs(y.mean() - 5) < 0.05
    assert abs(y.std() - 0.5) < 0.05


def test_other_runs_and_seeds_have_other_numbers_1_11b() -> None:
    one, other, seeded, again = (
        run(RandomOp, [np.array(number)], kind=RandomKind.UNIFORM, seed=seed, output_dims=DIMS)[0]
        for number, seed in ((0, 0), (1, 0), (0, 1), (0, 0))
    )
    np.testing.assert_array_equal(one, again)
    assert not np.isclose(one, other).all()
    assert not np.isclose(one, seeded).all()


def test_the_number_of_the_run() -> None:
    op = RunNumberOp.build_inferred([])
    with run_number(7):
        assert op.reference()[0] == 7
    assert op.reference()[0] == 0
