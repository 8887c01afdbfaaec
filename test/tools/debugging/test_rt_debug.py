"""Planted faults are found: a wrong pass by its number, a wrong tactic by its layer, both in a part of a few layers."""

from __future__ import annotations

import runpy
import stat
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

from mlirt.tools import rt_debug, rt_opt
from mlirt.tools.debugging.differences import INFINITE, difference, worst

WRONG_PASS = """\
from dataclasses import dataclass
from xdsl.passes import ModulePass
from mlirt.dialects.trt.activation import ActivationOp


@dataclass(frozen=True)
class WrongReluPass(ModulePass):
    name = "wrong-relu"

    def apply(self, ctx, op):
        for layer in list(op.walk()):
            if isinstance(layer, ActivationOp):
                made = ActivationOp.build_inferred([layer.input], {"kind": "sigmoid"}, location=layer.location)
                layer.parent.insert_op_before(made, layer)
                layer.output.replace_all_uses_with(made.output)
                layer.parent.erase_op(layer)
                return
"""
WRONG_TACTIC = """\
from xdsl.dialects import arith
from mlirt.dialects.fused.window import WindowOp
from mlirt.kernels.window import generic

OPS, TARGETS, PRIORITY = (WindowOp,), frozenset({"cpu"}), 1000


def lower(op, lowering):
    block = op.epilogue.block
    twice = arith.AddfOp(block.args[0], block.args[0])
    block.insert_op_before(twice, block.first_op)
    block.last_op.operands[0] = twice.result
    return generic.lower(op, lowering)
"""
WITH_PASS = ["--load-pass-plugin=wrong_pass.py", "--pipeline-edit=after=fuse-padding-convolution:wrong-relu"]
WITH_TACTIC = ["--load-pass-plugin=wrong_tactic.py"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    script = Path(__file__).parents[3] / "examples" / "small_network.py"
    onnx.save(runpy.run_path(str(script))["small_network"](), "small.onnx")  # pyright: ignore[reportUnknownMemberType]
    Path("wrong_pass.py").write_text(WRONG_PASS, encoding="utf-8")
    Path("wrong_tactic.py").write_text(WRONG_TACTIC, encoding="utf-8")
    Path("empty.mlir").touch()
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_right_network(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_debug.main(["compare", "small.onnx", "--shapes=image:2x3x8x8"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[-1] for line in lines[1:-1]] == [
        "fused.convolution", "fused.convolution", "fused.window", "fused.view", "fused.matmul",
    ]  # fmt: skip
    assert lines[-1] == "all 5 tensors are within 0.001"
    assert rt_debug.main(["bisect", "small.onnx"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "nothing is wrong within the bound"
    assert rt_debug.main(["reduce", "small.onnx", "-o", "part.mlir"]) == 1
    assert "there is nothing to reduce" in capsys.readouterr().err
    for other in ("reference", "onnxruntime"):
        assert rt_debug.main(["compare", "small.onnx", f"--with={other}"]) == 0
        assert "the tensor is within" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
def test_a_wrong_pass(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_debug.main(["bisect", "small.onnx", *WITH_PASS, "-o", "before.mlir"]) == 1
    *_, guilty, layer, hint, again = capsys.readouterr().out.splitlines()
    number = guilty.removeprefix("guilty: pass number ").partition(":")[0]
    assert guilty.startswith(f"guilty: pass number {number}: wrong-relu (0.")
    assert layer == "  at relu1"
    assert again == "  rt-opt before.mlir -p 'wrong-relu' --load-pass-plugin=wrong_pass.py"
    limit = hint.split()[4]
    assert rt_opt.main(["small.onnx", *WITH_PASS, "--to=layout", limit]) == 0
    assert "sigmoid" not in capsys.readouterr().out
    assert rt_opt.main(["small.onnx", *WITH_PASS, "--to=layout", f"--pass-limit={number}"]) == 0
    assert "sigmoid" in capsys.readouterr().out
    assert rt_debug.main(["compare", "small.onnx", *WITH_PASS, "--with=reference"]) == 1


@pytest.mark.usefixtures("folder")
def test_a_wrong_tactic(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_debug.main(["bisect", "small.onnx", *WITH_TACTIC]) == 1
    assert capsys.readouterr().out.splitlines()[-2:] == ["guilty: kernel: fused.window (1 off)", "  at pool"]
    assert rt_debug.main(["compare", "small.onnx", *WITH_TACTIC]) == 1
    assert capsys.readouterr().out.splitlines()[-1].endswith("of layer pool (fused.window)")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("flags", "layer"), [(WITH_PASS, "activation relu"), (WITH_TACTIC, "pooling max")])
def test_parts_that_still_fail(flags: list[str], layer: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_debug.main(["reduce", "small.onnx", *flags, "-o", "part.mlir"]) == 0
    again = f"1 layer: part.mlir; rt-opt part.mlir --run=cpu --input=part.npz {flags[0]}\n"
    assert capsys.readouterr().out.endswith(again)
    assert f"trt.{layer}" in Path("part.mlir").read_text(encoding="utf-8")
    assert rt_debug.main(["bisect", "part.mlir", "--input=part.npz", *flags]) == 1
    assert rt_debug.main(["bisect", "part.mlir", "--input=part.npz"]) == 0


@pytest.mark.usefixtures("folder")
def test_an_error_and_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    refuses = WRONG_TACTIC.replace("block = op", "raise RuntimeError('planted')\n    block = op")
    Path("wrong_tactic.py").write_text(refuses, encoding="utf-8")
    assert rt_debug.main(["reduce", "small.onnx", *WITH_TACTIC, "--error=planted", "-o", "part.mlir"]) == 0
    text = Path("part.mlir").read_text(encoding="utf-8")
    assert "trt.pooling" in text
    assert text.count("trt.convolution") == 0
    program = Path("holds.sh")
    program.write_text('#!/bin/sh\ngrep -q "trt.shuffle" "$1" && test -f "${1%.mlir}.npz"\n', encoding="utf-8")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    assert rt_debug.main(["reduce", "small.onnx", "--test=holds.sh", "-o", "part.mlir"]) == 0
    assert "1 layer: part.mlir" in capsys.readouterr().out


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["compare", "none.onnx"], "none.onnx: error: cannot read the file: No such file or directory"),
        (["compare", "none.mlir"], "none.mlir: error: cannot read the file: No such file"),
        (["compares", "small.onnx"], "invalid choice: 'compares'"),
        (["reduce", "small.onnx"], "reduce writes the part that fails: add -o FILE.mlir"),
        (["bisect", "small.onnx", "-o", "a.txt"], "expected a name that ends in .mlir"),
        (["compare", "small.onnx", "--with=none.plan"], "there is no such file; expected interpreter, reference,"),
        (["compare", "small.onnx", "--with=refrence"], "there is no such file; did you mean reference?"),
        (["compare", "small.onnx", "--with=small.onnx"], "--with=small.onnx: "),
        (["compare", "small.onnx", "--runs=3"], "--runs is a flag of repeat, not of compare"),
        (["repeat", "small.onnx", "-o", "a.mlir"], "-o is a flag of bisect and reduce, not of repeat"),
        (["bisect", "empty.mlir"], "empty.mlir: error: the IR has no function with a body"),
        (["reduce", "small.onnx", "--test=small.onnx", "-o", "a.mlir"], "--test=small.onnx: it cannot be run: Perm"),
        (["compare", "small.onnx", "--bound=-1"], "expected a number that is not negative"),
        (["compare", "small.onnx", "--input=x=zeros"], "the function has no input 'x'; it has image"),
        (["reduce", "small.onnx", "--test=none.sh", "-o", "a.mlir"], "--test=none.sh: there is no such file"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_debug.main(arguments) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_differences() -> None:
    one = np.array([1.0, 2.0], np.float32)
    assert difference(one, one) == 0
    assert difference(one, np.array([1.0, 4.0], np.float32)) == 0.5
    assert difference(one, np.array([1.0, np.nan], np.float32)) == INFINITE
    assert difference(np.array([np.nan, np.inf]), np.array([np.nan, np.inf])) == 0
    assert difference(np.array([1, 2]), np.array([1, 3])) == INFINITE
    assert difference(one, one[:1]) == INFINITE
    assert difference(one[:0], one[:0]) == 0
    assert worst({"a": one, "b": one}, {"a": one, "b": one * 2}) == ("b", 0.5)
    assert worst({}, {"a": one}) == ("a", INFINITE)
