"""Each family of kernels on a GPU, from a model of its own: onnxruntime's numbers, the same bits behind any caches."""

from __future__ import annotations

import numpy as np
import pytest
from family_models import FAMILIES, NOT_IN_MODELS
from onnx_models import run_onnxruntime
from repeated_runs import differing_runs

from mlirt.builder.compile import compile
from mlirt.dialects.context import RtContext
from mlirt.frontend.onnx.importer import import_model
from mlirt.kernels.lib.tactics import registry as tactics
from mlirt.passes.pipeline import PipelineOptions, run_phases


@pytest.mark.gpu
@pytest.mark.parametrize("family", FAMILIES)
def test_the_same_bits_a_hundred_times(family: str) -> None:
    model, feeds = FAMILIES[family]()
    engine = compile(model, "cuda", "fp16" if family == "attention" else "fp32", heuristic=True)
    found = list(engine.run(feeds).values())
    for got, want in zip(found, run_onnxruntime(model, feeds), strict=True):
        tolerance = 2e-3 if want.dtype == np.float16 else 1e-4
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)
    assert differing_runs(engine, feeds) == []


@pytest.mark.parametrize("family", FAMILIES)
def test_the_model_of_a_family_has_its_op(family: str) -> None:
    model, _ = FAMILIES[family]()
    context = RtContext()
    module = import_model(model, context)
    run_phases(module, context, last="layout", options=PipelineOptions("cuda", "fp16"))
    assert f"fused.{family}" in {op.name for op in module.walk()}


def test_every_op_of_a_gpu_has_a_model() -> None:
    found = [one for family in tactics.families() for one in tactics.tactics_of(family).values()]
    ops = {op.name.partition(".")[2] for one in found if "cuda" in one.TARGETS for op in one.OPS}
    assert ops == FAMILIES.keys() | NOT_IN_MODELS
