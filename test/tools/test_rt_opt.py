"""rt-opt as a program: where it reads and writes, what it exits with, and how it speaks of mistakes."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import numpy as np
import pytest

from mlirt.dialects.weights import WeightStore
from mlirt.tools.rt_opt import main

GOOD = "func.func @main(%x: f32) -> f32 {\n  func.return %x : f32\n}\n"
BAD = "func.func @main(%x: f32) -> f32 {\n  func.return %y : f32\n}\n"

OVERCOMMIT = Path("/proc/sys/vm/overcommit_memory")


@pytest.fixture
def good(tmp_path: Path) -> str:
    path = tmp_path / "good.mlir"
    path.write_text(GOOD, encoding="utf-8")
    return str(path)


def test_standard_input(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(GOOD))
    assert main(["-"]) == 0
    assert "func.func @main" in capsys.readouterr().out
    monkeypatch.setattr(sys, "stdin", io.StringIO(BAD))
    assert main([]) == 1
    assert capsys.readouterr().err == "<stdin>:2:15: error: values used but not defined: [%y]\n"


def test_output_file_appears_only_on_success(good: str, tmp_path: Path) -> None:
    output = tmp_path / "out.mlir"
    assert main([good, "-p", "no-such-pass", "-o", str(output)]) == 1
    assert not output.exists()
    assert main([good, "-o", str(output)]) == 0
    assert "func.func @main" in output.read_text(encoding="utf-8")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good.mlir", "out.mlir"]


def test_output_that_cannot_be_written(good: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path, why in (
        (tmp_path / "no" / "such" / "folder.mlir", "there is no such folder"),
        (tmp_path, "Is a directory"),
    ):
        assert main([good, "-o", str(path)]) == 1
        assert capsys.readouterr().err == f"rt-opt: error: cannot write {path}: {why}\n"


def test_weights_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from safetensors.numpy import save_file  # pyright: ignore[reportUnknownVariableType]

    weights = np.zeros(1024, np.float32)
    digest = WeightStore().put(weights, "w").digest.data
    save_file({"w": weights}, tmp_path / "net.safetensors")
    constant = f'  %w = trt.constant {{value = #trt.weights<"w", "{digest}">}} : tensor<1024xf32>\n'
    source = tmp_path / "net.mlir"
    source.write_text(f"func.func @main() -> tensor<1024xf32> {{\n{constant}  func.return %w : tensor<1024xf32>\n}}")
    (tmp_path / "out.safetensors").mkdir()
    assert main([str(source), "-o", str(tmp_path / "out.mlir")]) == 1
    assert "error: cannot write the weights to" in capsys.readouterr().err
    assert not (tmp_path / "out.mlir").exists()


@pytest.mark.parametrize("name", ["none.mlir", "none.onnx"])
def test_missing_file(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / name)]) == 1
    error = capsys.readouterr().err
    assert error == f"{tmp_path / name}: error: cannot read the file: No such file or directory\n"


def test_bytes_that_are_no_text(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "binary.mlir"
    path.write_bytes(b"\x08\x07\x12\xff\xfe")
    assert main([str(path)]) == 1
    assert "expected IR text or a name that ends in .onnx" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["func.func", "}", '"a', "%x = ", "#", "func.func @f() {"])
def test_text_that_is_no_ir(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "bad.mlir"
    path.write_text(text, encoding="utf-8")
    assert main([str(path)]) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"{path}:1:")
    assert len(captured.err.splitlines()) == 1
    assert captured.out == ""


@pytest.mark.parametrize("text", ["", "// only a comment\n"])
def test_a_text_of_comments_is_an_empty_module(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "comment.mlir"
    path.write_text(text, encoding="utf-8")
    assert main([str(path)]) == 0
    assert capsys.readouterr().out == "builtin.module {\n}\n"


def test_wrong_flags_are_errors_of_one_line(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    for flags in (["--no-such-flag"], ["-t", "fortran"], ["--to"], ["--target", "tpu", "--to", "memory"]):
        assert main([good, *flags]) == 1
        text = capsys.readouterr().err
        assert text.startswith("rt-opt: error: ")
        assert text.count("\n") == 1
        assert text.endswith("(rt-opt --help lists the flags)\n")


@pytest.mark.parametrize("opening", ["builtin.module {", "builtin.module attributes {a = " + "[" * 5000])
def test_text_that_is_nested_too_deeply(opening: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "deep.mlir"
    path.write_text(opening * 3000, encoding="utf-8")
    assert main([str(path)]) == 1
    assert capsys.readouterr().err == f"{path}:1:1: error: the IR is nested too deeply to be read\n"


@pytest.mark.skipif(
    OVERCOMMIT.is_file() and OVERCOMMIT.read_text("ascii").strip() == "1",
    reason="Linux grants any amount of memory here (vm.overcommit_memory=1) and ends processes that use it",
)
def test_a_network_that_no_memory_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "large.mlir"
    kind = "tensor<1048576x1048576xf32>"
    path.write_text(
        f"func.func @main() -> {kind} {{\n  %x = trt.constant {{value = dense<1.0> : {kind}}} : {kind}\n"
        f"  func.return %x : {kind}\n}}\n",
        encoding="utf-8",
    )
    assert main([str(path)]) == 1
    assert capsys.readouterr().err == f"{path}: error: there is too little memory for this network\n"


def test_help_lists_passes_with_their_summary(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert "verify-dominance" in text
    assert "Stop where a use is not dominated" in text
    assert main(["--help-pass", "verify-legality"]) == 0
    assert "phase: str" in capsys.readouterr().out
    assert main(["--list-passes"]) == 0
    assert "verify-locations" in capsys.readouterr().out.split()
    assert main(["--help-pass", "nothing"]) == 1


def test_a_misspelt_pass_to_print_after_is_an_error(good: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([good, "-p", "cse", "--print-ir-after=ces"]) == 1
    assert "there is no pass 'ces'" in capsys.readouterr().err


def test_errors_of_all_chunks_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "chunks.mlir"
    path.write_text(f"{BAD}// -----\n{GOOD}// -----\n{BAD}", encoding="utf-8")
    assert main([str(path), "--split-input-file"]) == 1
    captured = capsys.readouterr()
    assert [line.split(":")[1] for line in captured.err.splitlines()] == ["2", "10"]
    assert captured.out.count("func.func @main") == 1


def test_a_title_of_dashes_is_no_separator(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "title.mlir"
    path.write_text(f"// --------- title\n{GOOD}", encoding="utf-8")
    assert main([str(path), "--split-input-file"]) == 0
    assert "// -----" not in capsys.readouterr().out


def test_generic_form_and_locations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "located.mlir"
    path.write_text('%x = "test.op"() : () -> f32 loc("conv1")\n', encoding="utf-8")
    assert main([str(path), "--print-debuginfo"]) == 0
    assert 'loc("conv1")' in capsys.readouterr().out
    assert main([str(path), "--print-op-generic"]) == 0
    assert '"builtin.module"()' in capsys.readouterr().out


def test_unregistered_dialects_only_where_allowed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "unknown.mlir"
    path.write_text('"nobody.op"() : () -> ()\n', encoding="utf-8")
    assert main([str(path)]) == 1
    assert "unknown.mlir:1:2: error: there is no op 'nobody.op'\n" in capsys.readouterr().err
    assert main([str(path), "--allow-unregistered-dialect"]) == 0


def test_a_folder_is_no_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.onnx").mkdir()
    assert main([str(tmp_path / "a.onnx")]) == 1
    assert capsys.readouterr().err == f"{tmp_path / 'a.onnx'}: error: cannot read the file: Is a directory\n"


def test_the_file_is_named_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.onnx").write_text("no model", encoding="utf-8")
    assert main([str(tmp_path / "a.onnx")]) == 1
    assert capsys.readouterr().err.count("a.onnx") == 1


def test_help_for_an_unknown_pass_names_its_neighbours(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help-pass", "fuse-pointwize"]) == 1
    assert capsys.readouterr().err.startswith("rt-opt: error: there is no pass 'fuse-pointwize'; did you mean fuse-")


def test_source_of_a_network_without_kernels(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "a.mlir"
    relu = "%y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>"
    source.write_text(
        f"func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {{\n  {relu}\n  func.return %y : tensor<4xf32>\n}}"
    )
    assert main([str(source), "-t", "numba-cpu"]) == 1
    assert "no kernels have been made of this network yet: add --to memory" in capsys.readouterr().err
