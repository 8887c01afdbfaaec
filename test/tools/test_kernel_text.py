"""`rt-opt -t`: the stages of a kernel from its source to machine code, as text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlirt.builder.machine_code import disassembler
from mlirt.runtime.host_cpu import host_architecture
from mlirt.tools import rt_opt
from mlirt.tools.kernel_text import FORMS

NETWORK = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = trt.unary sqrt %x : (tensor<4xf32>) -> tensor<4xf32> loc("root")
  func.return %y : tensor<4xf32>
}
"""


@pytest.fixture
def network(tmp_path: Path) -> str:
    path = tmp_path / "network.mlir"
    path.write_text(NETWORK, encoding="utf-8")
    return str(path)


def _printed(network: str, form: str, capsys: pytest.CaptureFixture[str]) -> str:
    assert rt_opt.main([network, "--to=memory", f"--target={FORMS[form]}", "-t", form]) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize(
    ("form", "mark", "inside"),
    [
        ("numba-cpu", "#", r"def pointwise_\w+\(params, worker, workers\):"),
        ("llvm", ";", r"define void @pointwise_\w+\(.*(?s:.*)call .*@llvm\.sqrt\."),
        ("asm", "#", r"\.globl\s+pointwise_\w+(?s:.*)sqrt"),
        ("numba-cuda", "#", r"def pointwise_\w+\(input: \"float32\*\""),
        ("ptx", "//", r"\.visible \.entry pointwise_\w+\((?s:.*)sqrt"),
        ("sass", "//", r"\.text\.pointwise_\w+:(?s:.*)MUFU\.RSQ"),
    ],
)
def test_each_form_names_its_launches(
    network: str, form: str, mark: str, inside: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = _printed(network, form, capsys)
    assert f"{mark} launch 0: root\n" in text
    assert re.search(inside, text)
    if form == "asm" and host_architecture() == "x86_64":
        assert "sqrtps" in text  # of vectors, not of scalars alone
    assert text == _printed(network, form, capsys)


def test_texts_of_the_other_target(network: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main([network, "--to=memory", "-t", "ptx"]) == 1
    assert capsys.readouterr().err == "rt-opt: error: -t ptx prints kernels for cuda: add --target=cuda\n"
    kernels = tmp_path / "kernels.mlir"
    assert rt_opt.main([network, "--to=memory", "--target=cuda", "-o", str(kernels)]) == 0
    assert rt_opt.main([str(kernels), "-t", "llvm"]) == 1
    assert capsys.readouterr().err.endswith(": error: llvm is the text of kernels for cpu, and these are for cuda\n")
    assert rt_opt.main([network, "-t", "asm"]) == 1
    assert "no kernels have been made of this network yet: add --to memory" in capsys.readouterr().err


def test_without_nvdisasm(
    network: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NVDISASM", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(disassembler, "_PLACES", ())
    disassembler.find_nvdisasm.cache_clear()
    assert rt_opt.main([network, "--to=memory", "--target=cuda", "-t", "sass"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "needs nvdisasm, which is not installed here: `pip install nvidia-cuda-nvdisasm`" in line
    disassembler.find_nvdisasm.cache_clear()
