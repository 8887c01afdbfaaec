"""A plugin with a dialect of its own: its layers are imported, interpreted, rewritten and compiled like others."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import model_of, write_model

import mlirt
from mlirt.tools import rt_debug, rt_lab, rt_opt

SQUARE = """\
from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, operand_def, result_def

from mlirt.dialects.tensor_op import TensorOp
from mlirt.dialects.tensor_types import element_of
from mlirt.frontend.onnx.handlers import onnx_op
from mlirt.passes.rules import Rule, RulePass, binary, layer, value

@irdl_op_definition
class SquareOp(TensorOp):
    name = "my.square"
    input = operand_def(TensorType)
    output = result_def(TensorType)
    assembly_format = "$input attr-dict `:` type($input) `->` type($output)"

    def infer(self):
        return [self.input.type]

    def reference(self, x):
        return [x * x]

My = Dialect("my", [SquareOp])

def convert_square(at):
    element = element_of(at.op.output.type)
    at.replace(at.pointwise([at.op.input], at.op.output.type, element, lambda s, x: s.mul(x[0], x[0])))

CONVERSIONS = {SquareOp: convert_square}

@onnx_op("Square", domain="my.domain")
def square(net, node):
    return net.emit("my.square", [node.input(0)])

x = value("x")

@dataclass(frozen=True)
class FormSquaresPass(RulePass):
    name = "form-squares"
    rules = (Rule(binary("prod", x, x), layer(SquareOp, x)),)
"""
RELUS = """\
from dataclasses import dataclass

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.passes.rules import Rule, RulePass, layer, op, value

x = value("x")
relu = op(ActivationOp, x, kind="relu")
relu_of_x = layer(ActivationOp, x, kind="relu")

@dataclass(frozen=True)
class DropDoubleReluPass(RulePass):
    name = "drop-double-relu"
    rules = (Rule(op(ActivationOp, relu, kind="relu"), relu_of_x),)
"""
SQUARES, OTHER = "my plugins/square_dialect.py", "my plugins/relus.py"
X = np.random.default_rng(0).normal(size=(3, 16)).astype(np.float32)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Plugins that nobody may write, in a folder that nobody may write and whose name has a space; two networks."""
    monkeypatch.chdir(tmp_path)
    plugins = tmp_path / "my plugins"
    plugins.mkdir()
    for path, text in ((SQUARES, SQUARE), (OTHER, RELUS)):
        Path(path).write_text(text, encoding="utf-8")
        Path(path).chmod(0o400)
    plugins.chmod(0o500)
    make = onnx.helper.make_node
    plain = [make("Relu", ["x"], ["a"], name="r1"), make("Relu", ["a"], ["b"], name="r2")]
    plain += [make("Mul", ["b", "b"], ["c"], name="sq"), make("Exp", ["c"], ["y"], name="e")]
    write_model(model_of(plain, {"x": ("float32", ["n", 16])}, ["y"], {}), Path("plain.onnx"))
    own = [make("Square", ["x"], ["b"], name="sq", domain="my.domain"), make("Neg", ["b"], ["y"], name="e")]
    write_model(model_of(own, {"x": ("float32", ["n", 16])}, ["y"], domains=["my.domain"]), Path("own.onnx"))
    yield tmp_path
    plugins.chmod(0o700)


def test_a_layer_of_an_own_dialect_is_imported_and_compiled() -> None:
    for target in ("reference", "cpu"):
        found = mlirt.compile("own.onnx", target, plugins=[SQUARES]).run({"x": X})["y"]
        np.testing.assert_allclose(found, -X * X, rtol=1e-6)


def test_dumps_with_it_run_and_are_built(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [f"--load-pass-plugin={SQUARES}", "-o", "/dev/null"]
    assert rt_opt.main(["own.onnx", "--to=layout", "--dump-phases=dumps", *flags]) == 0
    assert "my.square" in Path("dumps/01-cleanup.mlir").read_text(encoding="utf-8")
    said: set[str] = set()
    for file in sorted(Path("dumps").glob("*.mlir")):
        for target in ("reference", "cpu"):
            assert rt_opt.main([str(file), f"--run={target}", "--input=x=random:1", *flags]) == 0
            said.add(capsys.readouterr().err)
    assert len(said) == 1


def test_a_pass_that_makes_it_beside_another_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    pipeline = mlirt.Pipeline.default().after("cleanup", "form-squares,drop-double-relu")
    found = mlirt.compile("plain.onnx", "cpu", plugins=[SQUARES, OTHER], pipeline=pipeline).run({"x": X})["y"]
    np.testing.assert_allclose(found, np.exp(np.maximum(X, 0) ** 2), rtol=1e-5)
    assert rt_lab.main([SQUARES, "plain.onnx", "--no-measure"]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[2:4] == ["1", "0"]  # applied, declined


def test_commands_that_are_printed_can_be_typed(capsys: pytest.CaptureFixture[str]) -> None:
    flags = [f"--test={shutil.which('true')}", f"--load-pass-plugin={SQUARES}"]
    assert rt_debug.main(["reduce", "own.onnx", "-o", "a b.mlir", *flags]) == 0
    said = capsys.readouterr().out
    assert f"rt-opt 'a b.mlir' --run=cpu --input='a b.npz' --load-pass-plugin='{SQUARES}'" in said


def test_a_layer_without_a_meaning(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = SQUARE.replace("(TensorOp)", "(IRDLOperation)").replace("irdl import ", "irdl import IRDLOperation, ")
    (folder / "bare.py").write_text(text.replace("def reference", "def other"), encoding="utf-8")
    flags = ["--load-pass-plugin=bare.py", "-o", "/dev/null"]
    ir = "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> {\n  %y = my.square %x : tensor<2xf32> -> tensor<2xf32>\n"
    (folder / "a.mlir").write_text(f"{ir}  func.return %y : tensor<2xf32>\n}}\n", encoding="utf-8")
    assert rt_opt.main(["a.mlir", "--run=reference", "--input=x=zeros", *flags]) == 1
    assert "not known to the interpreter: give its class a method reference(" in capsys.readouterr().err
