"""Branches and loops on a GPU, whatever the data make of them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_control_flow import DECODER, NESTED, SUM_EVEN, UNEQUAL_BRANCHES, UNTIL_LARGE, decoder_feeds, model
from onnx_models import Array, numbers, run_onnxruntime

from mlirt.builder.compile import compile

pytestmark = pytest.mark.gpu

X = np.array([0.5, 1.0, 0.25], np.float32)
CASES: list[tuple[str, list[dict[str, Array]]]] = [
    (SUM_EVEN, [{"items": numbers(9), "count": np.array(n)} for n in (9, 0, 1, 4)]),
    (UNTIL_LARGE, [{"x": X, "limit": np.array(limit, np.float32)} for limit in (1.5, 100.0, 3.0)]),
    (UNEQUAL_BRANCHES, [{"c": np.array(c), "x": numbers(n, 4)} for c in (True, False) for n in (3, 1)]),
    (NESTED, [{"x": numbers(2), "outer": np.array(i), "inner": np.array(j)} for i, j in ((2, 3), (0, 2), (3, 0))]),
    (DECODER, [decoder_feeds(length, stop) for stop in (99, 2, 5) for length in (2, 4)]),
]


@pytest.mark.parametrize(("text", "feeds"), CASES, ids=["if in loop", "while", "shapes", "loop in loop", "growing"])
def test_results(text: str, feeds: list[dict[str, Array]]) -> None:
    made = model(text)
    engine = compile(made, "cuda")
    for feed in feeds:
        for got, want in zip(engine.run(feed).values(), run_onnxruntime(made, feed), strict=True):
            assert (got.dtype, got.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
