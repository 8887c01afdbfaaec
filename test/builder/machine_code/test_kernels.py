"""Kernels that are compiled here wait for what they start, and the check finds one whose wait the assembler passes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from contractions import constant
from lowered_network import parse_module

from mlirt.builder import numba_cuda
from mlirt.builder.assemblers.nvjitlink import link
from mlirt.builder.machine_code import disassembler
from mlirt.builder.machine_code.check import faults_of
from mlirt.builder.machine_code.cubins_in_files import cubins_in, is_asynchronous
from mlirt.builder.numba_cuda_compiler import ptx_text
from mlirt.codegen.numba_cuda.kernel_source import sources_of
from mlirt.codegen.numba_cuda.kernel_text import KernelSource
from mlirt.errors import CompileError, MissingPackageError
from mlirt.passes.pipeline import run_passes
from mlirt.tools import check_machine_code

_WAIT = re.compile(r"\{ \.reg \.b32 blocks;.*?AGAIN: (wgmma\.wait_group[^;]*;) @again bra AGAIN; \}")


def product() -> KernelSource:
    """One tile each of `x[1568, 768]` times a known `[768, 384]`, with results in half precision."""
    weights = constant(np.ones((768, 384), np.float16), "f16")
    module, context = parse_module(f"""
    func.func @main(%x: tensor<1568x768xf16>) -> tensor<1568x384xf16> {{
      %w = {weights} : tensor<768x384xf16>
      %y = fused.matmul %x, %w {{fused.tactic = "cuda_wgmma:64x96s9"}} :
        (tensor<1568x768xf16>, tensor<768x384xf16>) -> tensor<1568x384xf16> {{
      ^bb0(%acc: f32):
        %n = arith.truncf %acc : f32 to f16
        fused.yield %n : f16
      }}
      func.return %y : tensor<1568x384xf16>
    }}""")
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads")
    ((_, source),) = sources_of(module).items()
    return source


@pytest.fixture(scope="module")
def ptx() -> str:
    return ptx_text(product(), "sm_90a")


@pytest.fixture(scope="module")
def early(ptx: str) -> bytes:
    """The kernel with waits that are no loops: the assembler converts accumulators above the last one."""
    text, waits = _WAIT.subn(r"\1", ptx)
    assert waits
    return link(text, "sm_90a", "early").code


def test_conversions_stay_behind_the_wait(ptx: str) -> None:
    assert faults_of(link(ptx, "sm_90a", "right").code) == []


def test_conversions_before_the_wait_are_found(
    early: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    faults = faults_of(early)
    assert len(faults) > 4
    assert all("F2FP" in fault and "has not been waited for" in fault for fault in faults)
    assert faults_of(early) == faults  # from the cache
    (tmp_path / "some.plan").write_bytes(b"in front" + early + b"behind")
    assert check_machine_code.main([str(tmp_path)]) == 1
    out = capsys.readouterr().out
    assert "F2FP" in out
    assert out.endswith("1 cubins, 1 with asynchronous operations, 1 with violations\n")


def test_builds_refuse_such_a_kernel(early: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    source = product()
    monkeypatch.setenv("MLIRT_CACHE", "off")
    monkeypatch.setenv(numba_cuda.SWITCH, "1")

    def made(*_: object) -> dict[str, numba_cuda.Cubins]:
        return {source.name: {"sm_90a": numba_cuda.Cubin(early, 1, 0)}}

    monkeypatch.setattr(numba_cuda, "_compile", made)
    with pytest.raises(
        CompileError, match=rf"kernel {source.name} for sm_90a: the assembler .* has not been waited for"
    ):
        numba_cuda.compile_kernels({source.name: source})
    failures: dict[str, CompileError] = {}
    assert numba_cuda.compile_kernels({source.name: source}, failures=failures) == {}
    assert list(failures) == [source.name]


def test_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "none").write_bytes(b"\x7fELF\x02\x01 no cubin")
    assert check_machine_code.main([str(tmp_path)]) == 1
    assert "no code for NVIDIA GPUs" in capsys.readouterr().err
    assert check_machine_code.main([str(tmp_path / "absent")]) == 1
    assert "cannot be read" in capsys.readouterr().err


def test_cubins_are_found_in_other_bytes(early: bytes) -> None:
    assert list(cubins_in(b"x" * 5 + early + b"\x7fELF\x02\x01" + early)) == [early, early]
    assert is_asynchronous(early)


def test_without_nvdisasm(early: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        """Nothing of any name."""

    monkeypatch.setenv("MLIRT_CACHE", "off")
    monkeypatch.delenv("NVDISASM", raising=False)
    monkeypatch.setattr(disassembler, "find_spec", absent)
    monkeypatch.setattr(disassembler.shutil, "which", absent)
    disassembler.find_nvdisasm.cache_clear()
    with pytest.raises(MissingPackageError, match="pip install nvidia-cuda-nvdisasm"):
        faults_of(early)
    disassembler.find_nvdisasm.cache_clear()
