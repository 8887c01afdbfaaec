"""The flag `--device` of the tools: which device kernels are chosen for."""

from __future__ import annotations

from pathlib import Path

import pytest

from mlirt.tools import rt_exec, rt_opt

PRODUCT = """builtin.module {
  func.func @main(%x: tensor<4096x1024xf16>, %w: tensor<1024x4096xf16>) -> tensor<4096x4096xf16> {
    %y = trt.matrix_multiply %x, %w : (tensor<4096x1024xf16>, tensor<1024x4096xf16>) -> tensor<4096x4096xf16>
    func.return %y : tensor<4096x4096xf16>
  }
}
"""


@pytest.fixture
def product(tmp_path: Path) -> str:
    path = tmp_path / "product.mlir"
    path.write_text(PRODUCT)
    return str(path)


@pytest.mark.parametrize(("device", "blocks"), [("h200", 132), ("h100-pcie", 114), ("h200+processors=120", 120)])
def test_rt_opt_chooses_kernels_for_a_device(
    device: str, blocks: int, product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ("--target=cuda", "--precision=fp16", "--to=memory", f"--device={device}", "--dump-pass-pipeline")
    assert rt_opt.main([product, *flags]) == 0
    captured = capsys.readouterr()
    assert f'grid = [#plan.expression<"{blocks}">' in captured.out
    assert f"map-parallel-to-threads{{device={device}}}" in captured.err


@pytest.mark.parametrize("flags", [("--target=cuda", "--device=h300"), ("--target=cpu", "--device=h200")])
def test_rt_opt_refuses_a_device_that_does_not_fit(
    flags: tuple[str, ...], product: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert rt_opt.main([product, "--to=memory", *flags]) == 1
    assert "device" in capsys.readouterr().err


def test_rt_exec_builds_for_a_device(product: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from mlirt.runtime.plan_file import read_plan

    plan = tmp_path / "a.plan"
    flags = ["--fp16", "--heuristic", "--buildOnly", f"--saveEngine={plan}", "--device=h100-pcie"]
    assert rt_exec.main([f"--onnx={product}", *flags]) == 0, capsys.readouterr()
    assert read_plan(plan).manifest.target.device.startswith("h100-pcie: 114 processors")


def test_rt_exec_refuses_a_device_that_there_is_not(product: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_exec.main([f"--onnx={product}", "--device=h300"]) == 1
    out = "".join(capsys.readouterr())
    assert "there is no device 'h300': expected one of a10, a100" in out
