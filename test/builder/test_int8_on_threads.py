"""A calibrated network as kernels for a GPU, on the interpreter of threads, against the reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from small_network import network

import mlirt
from mlirt.builder.calibration.ranges_for_build import Int8Choice, prepare_int8
from mlirt.builder.model_network import imported
from mlirt.dialects.context import RtContext
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.passes.pipeline import PipelineOptions, run_phases

Array = np.ndarray[Any, np.dtype[Any]]


@pytest.mark.parametrize(("precision", "tolerance"), [("int8", 1e-6), ("int8+fp16", 1e-2)])
def test_a_network_of_int8(precision: str, tolerance: float) -> None:
    inputs: dict[str, Array] = {"x": np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)}
    ranges = mlirt.calibrate(network(), [inputs])
    want = mlirt.compile(network(), target="reference", precision="int8", calibration=ranges).run(inputs)["y"]
    context = RtContext()
    module = imported(network(), context, None, {}, None)
    prepare_int8(module, context, "cuda", Int8Choice(ranges, {}), {}, None)
    run_phases(module, context, options=PipelineOptions("cuda", precision))
    assert "kernel.warpgroup_mma s8" in str(module)
    np.testing.assert_allclose(run_plan(module, context, inputs)["y"], want, rtol=0, atol=tolerance)
