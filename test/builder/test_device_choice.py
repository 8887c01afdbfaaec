"""The device that kernels are chosen for: asked for, found by a driver, kept in the plan; and what follows from it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from contractions import product_text
from gpu_kernels import lower_to_threads
from lowered_network import parse_module
from onnx import TensorProto, helper

import mlirt
from mlirt.builder import host
from mlirt.builder.device_choice import asked_target, asking, description, gpu_here
from mlirt.builder.host import cpu_target, cuda_target, log_target
from mlirt.dialects.device_files import gpu_device
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.errors import InvalidInputError, PlanError
from mlirt.passes.phases import TargetMachine, find_phase, specs_of
from mlirt.passes.pipeline import run_passes
from mlirt.runtime import host_cpu
from mlirt.tools.rt_opt import main as rt_opt

H200 = {"processors": 132, "clock_mhz": 1980, "shared_bytes": 232448, "memory_gb_s": 4917}


def model() -> Any:
    """One product."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    weights = helper.make_tensor("w", TensorProto.FLOAT, [64, 256], np.zeros((64, 256), np.float32).tobytes(), raw=True)
    values = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in SHAPES]
    return helper.make_model(helper.make_graph([node], "product", values[:1], values[1:], [weights]))


SHAPES = (("x", [64, 64]), ("y", [64, 256]))


@pytest.mark.parametrize(
    ("changes", "name", "capability", "expected"),
    [
        ({}, "NVIDIA H200", (9, 0), "h200"),
        ({"processors": 130}, "NVIDIA H200", (9, 0), "h200+processors=130"),
        ({"processors": 114, "clock_mhz": 1755, "memory_gb_s": 2039}, "NVIDIA H100 PCIe", (9, 0), "h100-pcie"),
        ({"processors": 78, "memory_gb_s": 0}, "Another", (9, 0), "h200+processors=78"),
        ({"clock_mhz": 1200.5}, "NVIDIA H200", (9, 0), "h200+clock_mhz=1200.5"),
        ({}, "Another", (6, 0), ""),
    ],
)
def test_a_driver_tells_the_device(
    changes: dict[str, float], name: str, capability: tuple[int, int], expected: str
) -> None:
    found = description({**H200, **changes}, name, capability)
    assert found == expected
    assert not found or gpu_device(found).processors == {**H200, **changes}["processors"]


def test_what_is_asked_for_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLIRT_ARCH", raising=False)
    assert asked_target() is None
    with asking("h100-pcie"):
        assert cuda_target().gpu.processors == 114
        assert log_target("auto") == "cuda"
        assert cpu_target().device == ""
        with pytest.raises(InvalidInputError, match="the device h100-pcie is for target cuda, not cpu"):
            log_target("cpu")
    with asking("a100"):
        assert cuda_target().arch == "sm_80"
        monkeypatch.setenv("MLIRT_ARCH", "sm_90a")
        with pytest.raises(InvalidInputError, match="runs code for sm_80, but MLIRT_ARCH is sm_90a"):
            cuda_target()
    monkeypatch.setenv("MLIRT_DEVICE", "cpu-128")
    assert cpu_target().vector_bits == 128
    assert cpu_target().special == frozenset()
    assert log_target("auto") == "cpu"


def test_the_gpu_that_is_here_counts_where_none_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MLIRT_ARCH", raising=False)
    monkeypatch.setattr("mlirt.builder.host.gpu_here", lambda: "h200+processors=130")
    assert cuda_target().gpu.processors == 130
    monkeypatch.setenv("MLIRT_ARCH", "sm_90a")  # code for another machine
    assert cuda_target().gpu.processors == 132


@pytest.mark.gpu
def test_the_driver_of_this_machine() -> None:
    from mlirt.runtime.cuda_driver import open_driver

    assert gpu_device(gpu_here()).processors == open_driver().processors()


@pytest.mark.parametrize(
    ("target", "device", "words"),
    [
        ("cuda", "h100-pcie", "h100-pcie: 114 processors, 1755 MHz, 2000 GB/s"),
        ("cuda", "h200+processors=148", "h200: 148 processors, 1980 MHz, 4800 GB/s"),
        ("cpu", "cpu-128", "cpu-128: vectors of 128 bits"),
    ],
)
def test_a_plan_says_what_its_estimates_were_for(target: str, device: str, words: str, tmp_path: Path) -> None:
    engine = mlirt.compile(model(), target, device=device, heuristic=True)
    engine.save(tmp_path / "a.plan")
    from mlirt.runtime.plan_file import read_plan

    plan = read_plan(tmp_path / "a.plan")
    assert plan.manifest.target.device == words
    assert cast("Any", plan.manifest_json)["target"]["device"] == words


def test_a_device_of_another_target_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="the device h200 is for target cuda, not cpu"):
        mlirt.compile(model(), "cpu", device="h200")
    with pytest.raises(InvalidInputError, match="there is no device 'h300'"):
        mlirt.compile(model(), device="h300")


def grids(text: str, device: str, tactic: str = "") -> list[list[int]]:
    """The blocks of the launches of a network on a device."""
    import gpu_kernels

    before, gpu_kernels.DEVICE = gpu_kernels.DEVICE, device
    try:
        module, context = parse_module(text)
        lowered = lower_to_threads(module, context, tactic)
    finally:
        gpu_kernels.DEVICE = before
    launches = [op for op in lowered.walk() if isinstance(op, LaunchOp)]
    return [[int(str(size.text.data)) for size in cast("Any", op.grid)] for op in launches]


LARGE = product_text((4096, 1024), (1024, 4096), (4096, 4096), "f16", (False, False))


@pytest.mark.parametrize(
    ("device", "blocks"), [("h200", 132), ("h100-sxm", 132), ("h100-pcie", 114), ("h200+processors=148", 148)]
)
def test_persistent_blocks_are_as_many_as_processors(device: str, blocks: int) -> None:
    assert grids(LARGE, device, "cuda_wgmma:128x256s4") == [[blocks, 1, 1]]


def test_two_persistent_blocks_share_a_processor() -> None:
    assert grids(LARGE, "h100-pcie", "cuda_wgmma:128x64s4d") == [[228, 1, 1]]


def test_pipelines_name_the_device() -> None:
    lowering = find_phase("lowering")
    text = ",".join(specs_of(lowering, "cuda", machine=TargetMachine(device="h100-pcie")))
    assert "convert-fused-to-kernel{target=cuda vector_bits=512 threads=2 arch=sm_90a device=h100-pcie}" in text
    assert "map-parallel-to-threads{device=h100-pcie}" in text
    assert "device" not in ",".join(specs_of(lowering, "cuda"))
    spaced = ",".join(specs_of(lowering, "cuda", machine=TargetMachine(device="/a b/mine.toml")))
    assert 'device="/a b/mine.toml"' in spaced
    assert TargetMachine.for_device("cuda", "a100").arch == "sm_80"
    assert TargetMachine.for_device("cpu", "cpu-avx2").vector_bits == 256


OLDER = frozenset({"avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "movbe", "sse4.2"})


@pytest.mark.parametrize(("device", "missing"), [("cpu-avx512", "avx512f"), ("cpu-amx", "avx512f"), ("cpu-avx2", "")])
def test_a_processor_is_built_for_whatever_this_one_is(
    device: str, missing: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Only the plan is made: it runs where the processor is."""
    for module in (host, host_cpu):
        monkeypatch.setattr(module, "host_features", lambda: OLDER)
    engine = cast("Any", mlirt.compile(model(), device=device))
    target = engine.plan.manifest.target
    assert {name.removeprefix("+") for name in target.features} >= OLDER | ({missing} if missing else set())
    engine.save(tmp_path / "other.plan")
    if not missing:
        assert mlirt.load(tmp_path / "other.plan").run({"x": np.zeros((64, 64), np.float32)})["y"].shape == (64, 256)
        return
    assert engine.inputs[0].name == "x"
    for run in (lambda: engine.run({"x": np.zeros((64, 64), np.float32)}), lambda: mlirt.load(tmp_path / "other.plan")):
        with pytest.raises(PlanError, match=r"the plan needs processor features that this machine lacks: .*avx512f"):
            run()


def test_a_processor_has_no_wider_vectors_than_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_DEVICE", "cpu-avx512")
    assert cpu_target().vector_bits == 512
    monkeypatch.setenv("MLIRT_VECTOR_BITS", "256")
    assert cpu_target().vector_bits == 256
    monkeypatch.setenv("MLIRT_DEVICE", "cpu-128")
    with pytest.raises(InvalidInputError, match="vectors of 256 bits were asked for, the device cpu-128 has 128"):
        cpu_target()


def test_machine_code_is_that_of_the_processor(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "sum.mlir"
    kind = "tensor<4096xf32>"
    path.write_text(
        f"func.func @main(%x: {kind}) -> {kind} {{ %y = trt.elementwise sum %x, %x : ({kind}, {kind}) -> {kind}"
        f" func.return %y : {kind} }}",
        encoding="utf-8",
    )
    for device, register in (("cpu-avx512", "%zmm"), ("cpu-avx2", "%ymm"), ("cpu-128", "%xmm")):
        assert rt_opt([str(path), "--to=memory", "-t", "asm", f"--device={device}"]) == 0
        text = capsys.readouterr().out
        assert next(one for one in ("%zmm", "%ymm", "%xmm") if one in text) == register


def test_long_rows_are_split_for_the_processors() -> None:
    """A sum of few long rows is parted so that each processor has two blocks."""
    text = (
        "builtin.module { func.func @main(%x: tensor<2x13200x64xf32>) -> tensor<2x1x1xf32> {"
        " %y = trt.reduce sum %x {axes = array<i64: 1, 2>} : (tensor<2x13200x64xf32>) -> tensor<2x1x1xf32>"
        " func.return %y : tensor<2x1x1xf32> } }"
    )
    parts: dict[str, str] = {}
    for device in ("h200", "h200+processors=30"):
        module, context = parse_module(text)
        run_passes(module, context, f"convert-trt-to-fused,split-reductions{{device={device}}}")
        parts[device] = str(module)
    assert parts["h200"] != parts["h200+processors=30"]
