"""A plan for GPUs is built where there is none: cubins, grids, shared memory, all in one file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_network import network

import mlirt
from mlirt.builder.build import BuildOptions, build_plan
from mlirt.builder.host import gpu_is_here
from mlirt.dialects.context import RtContext
from mlirt.dialects.plan.interpreter import run_plan
from mlirt.errors import PlanError
from mlirt.frontend.onnx.importer import import_model
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.runtime.plan_file import Plan, read_plan


@pytest.fixture(scope="module")
def plan() -> Plan:
    context = RtContext()
    return build_plan(import_model(network(), context, {}, None), context, "cuda")


def test_every_kernel_has_code_for_what_it_is_chosen_for(plan: Plan) -> None:
    """Kernels for Hopper may need what others do not have, such as clusters; those for all have code for two."""
    assert plan.manifest.kernels
    assert all("sm_90a" in kernel.objects for kernel in plan.manifest.kernels)
    for kernel in plan.manifest.kernels:
        for section in kernel.objects.values():
            assert kernel.symbol.encode() in bytes(plan.sections[section])


def test_every_kernel_for_any_gpu_has_code_for_two_architectures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_ARCH", "sm_80")
    context = RtContext()
    plan = build_plan(import_model(network(), context, {}, None), context, "cuda", BuildOptions())
    assert plan.manifest.kernels
    assert all(set(kernel.objects) == {"sm_80", "sm_90a"} for kernel in plan.manifest.kernels)


def test_a_plan_for_one_machine_has_its_code_alone() -> None:
    context = RtContext()
    own = build_plan(
        import_model(network(), context, {}, None), context, "cuda", BuildOptions(architectures=["sm_90a"])
    )
    assert {architecture for kernel in own.manifest.kernels for architecture in kernel.objects} == {"sm_90a"}


def test_launches_have_grids_and_fit_a_block(plan: Plan) -> None:
    for launch in plan.manifest.launches:
        kernel = plan.manifest.kernels[launch.kernel]
        assert launch.grid is not None
        assert all(isinstance(size, int) and size > 0 for size in launch.grid)
        assert 32 <= kernel.block[0] <= 1024
        assert kernel.shared_bytes <= 99 * 1024


@pytest.mark.skipif(gpu_is_here(), reason="is about machines without a GPU")
def test_an_engine_for_a_gpu_is_built_and_saved_where_there_is_none(tmp_path: Path) -> None:
    engine = mlirt.compile(network(), "cuda")
    engine.save(tmp_path / "small.plan")
    assert read_plan(tmp_path / "small.plan").manifest.target.kind == "cuda"
    assert engine.layers
    with pytest.raises(PlanError, match="built for CUDA, but no CUDA d"):
        engine.run({tensor.name: np.zeros(()) for tensor in engine.inputs})


def test_a_plan_goes_through_a_file(plan: Plan, tmp_path: Path) -> None:
    plan.save(tmp_path / "small.plan")
    again = read_plan(tmp_path / "small.plan")
    assert again.manifest == plan.manifest
    assert all(bytes(again.sections[name]) == bytes(code) for name, code in plan.sections.items())


@pytest.mark.parametrize(("precision", "tolerance"), [("fp32", 1e-4), ("fp16", 2e-2)])
def test_the_mapped_network_is_right_in_the_simt_interpreter(precision: str, tolerance: float) -> None:
    x = np.random.default_rng(1).standard_normal((1, 3, 64, 64)).astype(np.float32)
    want = mlirt.compile(network(), target="reference").run({"x": x})["y"]
    context = RtContext()
    module = import_model(network(), context, {}, None)
    run_phases(module, context, options=PipelineOptions("cuda", precision))
    found = run_plan(module, context, {"x": x})["y"]
    np.testing.assert_allclose(found.astype(np.float32), want, atol=tolerance)
