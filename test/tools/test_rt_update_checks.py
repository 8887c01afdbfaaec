"""rt-update-checks: the CHECK lines of a test follow from what its RUN line prints."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from lit_in_process import run_test

from mlirt.tools import rt_update_checks

PART = """\
// Two halves.
func.func @twice(%x: tensor<2x1xf32>) -> tensor<2x1xf32> {
  // A comment inside.
  %one = trt.constant {value = dense<[[1.0], [2.0]]> : tensor<2x1xf32>} : tensor<2x1xf32>
  %y = trt.elementwise sum %x, %one : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
  func.return %y : tensor<2x1xf32>
}
"""
CHECKS = """\
// CHECK-LABEL: func.func @twice(
// CHECK-SAME: [[X:%.*]]: tensor<2x1xf32>) -> tensor<2x1xf32> {
// CHECK-NEXT: [[ONE:%.*]] = trt.constant {value = dense<{{\\[\\[}}1.000000e+00], [2.000000e+00]]> : tensor<2x1xf32>} : tensor<2x1xf32>
// CHECK-NEXT: [[Y:%.*]] = trt.elementwise sum [[X]], [[ONE]] : (tensor<2x1xf32>, tensor<2x1xf32>) -> tensor<2x1xf32>
// CHECK-NEXT: func.return [[Y]] : tensor<2x1xf32>
"""  # noqa: E501
RELU = """\
func.func @other(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  %s = trt.elementwise sum %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %y = trt.activation relu %s : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""
SPLIT = f"// RUN: rt-opt %s --split-input-file -p cse \\\n// RUN:   | filecheck %s\n\n{PART}\n// -----\n\n{RELU}"


def _write(folder: Path, text: str) -> Path:
    path = folder / "test.mlir"
    path.write_text(text, encoding="utf-8")
    return path


def _updated(path: Path, *flags: str) -> str:
    assert rt_update_checks.main([str(path), *flags]) == 0
    return path.read_text(encoding="utf-8")


def test_checks_stand_above_each_function(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _write(tmp_path, SPLIT)
    text = _updated(path)
    head, rest = text.split("\n", 1)
    assert head == "// NOTE: rt-update-checks writes the CHECK lines of this file."
    comment, function = PART.split("\n", 1)
    assert f"{comment}\n{CHECKS}{function}\n// -----\n\n// CHECK-LABEL: func.func @other(\n" in rest
    kept = "".join(f"{line}\n" for line in rest.splitlines() if "CHECK" not in line)
    assert kept == SPLIT
    run_test(path, tmp_path)
    assert capsys.readouterr().out == f"wrote {path}\n"
    assert _updated(path) == text
    assert not capsys.readouterr().out


def test_checks_follow_the_passes(tmp_path: Path) -> None:
    path = _write(tmp_path, f"// RUN: rt-opt %s | filecheck %s\n{RELU}")
    _updated(path)
    changed = path.read_text(encoding="utf-8").replace("rt-opt %s", "rt-opt %s -p convert-trt-to-fused,fuse-pointwise")
    text = _updated(_write(tmp_path, changed))
    assert "trt.activation relu [[" not in text
    assert "// CHECK-NEXT: ^bb0([[V0:%.*]]: f32, [[V1:%.*]]: f32):" in text
    assert "arith.addf [[V0]], [[V1]] : f32" in text
    run_test(path, tmp_path)
    path.write_text(text.replace("arith.addf", "arith.subf"))
    with pytest.raises(Exception, match=r"arith\.subf"):
        run_test(path, tmp_path)


def test_prefixes_and_functions_that_a_pass_adds(tmp_path: Path) -> None:
    runs = "// RUN: rt-opt %s | filecheck %s --check-prefix=BEFORE\n// RUN: rt-opt %s --to=memory | filecheck %s\n"
    text = _updated(_write(tmp_path, f"{runs}\n{RELU}"))
    assert text.index("// BEFORE-LABEL: func.func @other(") < text.index("// CHECK-LABEL: func.func @other(")
    assert "// CHECK-LABEL: kernel.func @pointwise_{{[0-9a-f]+}}(\n" in text
    assert "kernel = @pointwise_{{[0-9a-f]+}}" in text
    run_test(tmp_path / "test.mlir", tmp_path)
    assert _updated(tmp_path / "test.mlir") == text


def test_lines_by_hand_are_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"// RUN: rt-opt %s | filecheck %s\n// CHECK: trt.activation\n{RELU}"
    path = _write(tmp_path, text)
    assert rt_update_checks.main([str(path)]) == 1
    said = f"rt-update-checks: error: {path}: its CHECK lines were written by hand; --overwrite replaces them\n"
    assert capsys.readouterr().err == said
    assert path.read_text() == text
    assert "// CHECK: trt.activation\n" not in _updated(path, "--overwrite")


@pytest.mark.parametrize(
    ("run", "line"),
    [
        ("rt-opt %s --verify-diagnostics", "no RUN line ends in `| filecheck %s`, so that there is nothing to check"),
        ("rt-opt %s 2>&1 | filecheck %s", "cannot be run here, as `>&` needs a shell: expected `rt-opt %s .. |"),
        ("not rt-opt %s | filecheck %s", "as `not` is none of rt-opt and rt-translate"),
        ("sed s/a/b/ %s | rt-opt | filecheck %s", "as `sed` is none of rt-opt and rt-translate"),
        ("rt-opt %s | filecheck %s --match-full-lines", "as filecheck is called with"),
        ("rt-opt %s | filecheck other.mlir", "as filecheck is called with `other.mlir`"),
        ("rt-opt %s -p nothing | filecheck %s", "test.mlir:1: rt-opt ends with 1: rt-opt: error: there is no pass"),
        ("rt-opt %s --to=memory -t numba-cpu | filecheck %s", "expected it to print functions of IR for each part"),
        ("rt-opt %s -p 'cse | filecheck %s", "the RUN line cannot be read: No closing quotation"),
    ],
)
def test_runs_that_are_refused(run: str, line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _write(tmp_path, f"// RUN: {run}\n{RELU}")
    assert rt_update_checks.main([str(path)]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert said.startswith("rt-update-checks: error: ")
    assert line in said
    assert path.read_text() == f"// RUN: {run}\n{RELU}"


def test_two_outputs_for_one_prefix(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = _write(tmp_path, f"// RUN: rt-opt %s | filecheck %s\n// RUN: rt-opt %s --to=fusion | filecheck %s\n{RELU}")
    assert rt_update_checks.main([str(path)]) == 1
    assert (
        ":2: prints something else than the RUN line before it with the prefix CHECK: give" in capsys.readouterr().err
    )


def test_without_filecheck(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "filecheck.main", None)
    path = _write(tmp_path, f"// RUN: rt-opt %s | filecheck %s\n{RELU}")
    assert rt_update_checks.main([str(path)]) == 1
    (said,) = capsys.readouterr().err.splitlines()
    assert "filecheck" in said
