"""Lowered branches and loops in the interpreter of kernels, which sees races and bounds, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_control_flow import NESTED, SUM_EVEN, UNEQUAL_BRANCHES, UNTIL_LARGE, model
from onnx_models import Array, numbers, run_onnxruntime

from mlirt.dialects.context import RtContext
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases

CASES: list[tuple[str, dict[str, Array]]] = [
    (SUM_EVEN, {"items": numbers(5), "count": np.array(5)}),
    (UNTIL_LARGE, {"x": np.array([0.5, 1.0, 0.25], np.float32), "limit": np.array(9.0, np.float32)}),
    (UNEQUAL_BRANCHES, {"c": np.array(False), "x": numbers(3, 4)}),
    (UNEQUAL_BRANCHES, {"c": np.array(True), "x": numbers(3, 4)}),
    (NESTED, {"x": numbers(2), "outer": np.array(2), "inner": np.array(3)}),
]


@pytest.mark.parametrize("target", ["cpu", "cuda"])
@pytest.mark.parametrize(("text", "feeds"), CASES, ids=["if in loop", "while", "one row", "all rows", "loop in loop"])
def test_regions(text: str, feeds: dict[str, Array], target: str) -> None:
    ctx = RtContext()
    made = model(text)
    network = import_model(made, ctx)
    run_phases(network, ctx, options=PipelineOptions(target))
    results = run_plan(network, ctx, feeds).values()
    for got, want in zip(results, run_onnxruntime(made, feeds), strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-5)
