"""Files of users bring passes, ops and ONNX handlers while they count, and no longer."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx_models import model_of, write_model
from xdsl.dialects.builtin import f32
from xdsl.passes import ModulePass
from xdsl.utils.test_value import create_ssa_value

from mlirt.dialects import pass_plugins
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.softmax import SoftmaxOp
from mlirt.dialects.pass_plugins import active, active_digest, load, using
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.target import Target
from mlirt.dialects.tensor_types import tensor
from mlirt.errors import InvalidInputError
from mlirt.frontend.onnx.handlers import handler_for
from mlirt.kernels.lib.tactics.registry import plugin_tactics, tactics_for
from mlirt.passes import registry
from mlirt.tools import rt_opt

PASS = """\
from dataclasses import dataclass
from xdsl.passes import ModulePass
{more}
@dataclass(frozen=True)
class MinePass(ModulePass):
    \"\"\"Do nothing, `x` times.\"\"\"
    name = "{name}"
    x: int = {x}
    def apply(self, ctx, op):
        pass
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(tmp_path)):
            del sys.modules[name]


def written(folder: Path, name: str = "mine", x: int = 1, more: str = "") -> Path:
    path = folder / "plugin.py"
    path.write_text(PASS.format(name=name, x=x, more=more), encoding="utf-8")
    return path


def test_a_pass_counts_inside_of_using_alone(folder: Path) -> None:
    path = written(folder)
    assert not registry.exists("mine")
    with using([path]) as plugins:
        assert [plugin.path for plugin in plugins] == [path]
        assert registry.load("mine").name == "mine"
        assert registry.exists("mine")
        with using([path]):
            assert len(active()) == 1
    assert active() == ()
    assert not registry.exists("mine")


def test_an_edited_file_is_another_plugin(folder: Path) -> None:
    first = load(written(folder, x=1))
    assert load(written(folder, x=1)) is first
    second = load(written(folder, x=2))
    assert second.digest != first.digest
    assert [one.__dict__["x"] for one in second.classes(ModulePass)] == [2]


def test_modules_beside_the_file_belong_to_it(folder: Path) -> None:
    (folder / "wb_beside.py").write_text("LIMIT = 3\n", encoding="utf-8")
    path = written(folder, more="from wb_beside import LIMIT")
    first = load(path)
    (folder / "wb_beside.py").write_text("LIMIT = 44\n", encoding="utf-8")
    second = load(path)
    assert second.digest != first.digest
    assert (vars(first.module)["LIMIT"], vars(second.module)["LIMIT"]) == (3, 44)


def test_the_digest_is_that_of_all_that_count(folder: Path) -> None:
    assert active_digest() == ""
    with using([written(folder)]) as (plugin,):
        assert active_digest() == plugin.digest


def test_near_misses_know_plugins(folder: Path) -> None:
    with using([written(folder, name="fold-my-things")]), pytest.raises(InvalidInputError, match="mean fold-my-things"):
        registry.load("fold-my-thing")


@pytest.mark.parametrize("name", ["", "my pass", "a{b}", "-a"])
def test_names_that_no_pipeline_can_say(folder: Path, name: str) -> None:
    with using([written(folder, name=name)]), pytest.raises(InvalidInputError, match="which no pipeline can say"):
        registry.plugin_passes()


def test_an_empty_path(folder: Path) -> None:
    with pytest.raises(InvalidInputError, match="expected the path of a Python file"), using([""]):
        pass


@pytest.mark.parametrize("name", ["cse", "fuse-pointwise", "licm"])
def test_names_of_passes_that_are_taken(folder: Path, name: str) -> None:
    with using([written(folder, name=name)]), pytest.raises(InvalidInputError, match=f"there is another pass '{name}'"):
        registry.plugin_passes()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a = 1\n\nb = a / 0\n", "line 3: ZeroDivisionError: division by zero"),
        ("def (:\n", "line 1: SyntaxError: "),
        ("raise SystemExit(3)\n", "line 1: SystemExit: 3"),
        ("import a_module_that_is_nowhere\n", "line 1: ModuleNotFoundError: "),
    ],
)
def test_files_that_cannot_be_executed(folder: Path, text: str, message: str) -> None:
    path = folder / "wrong.py"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InvalidInputError) as found:
        load(path, "--load-pass-plugin")
    assert str(found.value).startswith(f"--load-pass-plugin={path}: {message}")
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("name", "message"), [("none.py", "there is no such file"), (".", "that is a folder"), ("a.txt", "ends in .py")]
)
def test_paths_that_are_none(folder: Path, name: str, message: str) -> None:
    (folder / "a.txt").touch()
    with pytest.raises(InvalidInputError, match=message):
        load(folder / name)


OPS = """\
from xdsl.irdl import IRDLOperation, irdl_op_definition, result_def
from xdsl.ir import Dialect

@irdl_op_definition
class ExtraOp(IRDLOperation):
    name = "trt.extra"
    out = result_def()

@irdl_op_definition
class OwnOp(IRDLOperation):
    name = "own.op"
    out = result_def()

@irdl_op_definition
class AloneOp(IRDLOperation):
    name = "alone.op"

Own = Dialect("own", [OwnOp])
"""


def test_ops_and_dialects(folder: Path) -> None:
    path = folder / "ops.py"
    path.write_text(OPS, encoding="utf-8")
    with using([path]):
        ctx = RtContext()
        register_dialects(ctx)
        for name in ("trt.extra", "trt.activation", "own.op", "alone.op"):
            assert ctx.get_op(name).name == name
    plain = RtContext()
    register_dialects(plain)
    assert plain.get_optional_op("trt.extra") is None
    assert plain.get_optional_op("own.op") is None


def test_a_dialect_of_a_name_that_is_taken(folder: Path) -> None:
    path = folder / "taken.py"
    path.write_text("from xdsl.ir import Dialect\nMine = Dialect('trt')\n", encoding="utf-8")
    with using([path]), pytest.raises(InvalidInputError, match="there is a dialect 'trt'"):
        register_dialects(RtContext())


HANDLERS = """\
from mlirt.frontend.onnx.handlers import onnx_op

@onnx_op("Relu")
def mine(net, node):
    raise NotImplementedError

@onnx_op("MyOp", domain="my.domain", since=3)
def other(net, node):
    raise NotImplementedError
"""


LAYER = """\
from xdsl.dialects.builtin import TensorType
from xdsl.irdl import irdl_op_definition, operand_def, result_def
from mlirt.dialects.tensor_op import TensorOp
from mlirt.frontend.onnx.handlers import onnx_op

@irdl_op_definition
class HalfOp(TensorOp):
    name = "trt.half"
    input = operand_def(TensorType)
    output = result_def(TensorType)

    def infer(self):
        return [self.input.type]

    def reference(self, x):
        return [x.halve() if x.size > 3 else x / 2]

@onnx_op("Half", domain="my.domain")
def half(net, node):
    return net.emit("half", [node.input(0)])

@onnx_op("Wrong", domain="my.domain")
def wrong(net, node):
    return net.emit("halve", [node.input(0)])
"""


def test_handlers_make_the_layers_of_their_file(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A layer of a file is imported and run; mistakes in it are said with its line."""
    monkeypatch.chdir(folder)
    Path("layer.py").write_text(LAYER, encoding="utf-8")
    for op in ("Half", "Wrong"):
        node = onnx.helper.make_node(op, ["x"], ["y"], name="it", domain="my.domain")
        model = model_of([node], {"x": ("float32", ["n"])}, ["y"], {})
        model.opset_import.append(onnx.helper.make_opsetid("my.domain", 1))
        write_model(model, Path(f"{op}.onnx"))
    common = ["--load-pass-plugin=layer.py", "--run=reference", "--input=x=zeros", "-o", "out.mlir"]
    assert rt_opt.main(["Half.onnx", "--shapes=x:3", *common]) == 0
    assert "y: float32 3" in capsys.readouterr().err
    assert "trt.half" in Path("out.mlir").read_text(encoding="utf-8")
    assert rt_opt.main(["Half.onnx", "--shapes=x:4", *common]) == 1
    assert "rt-opt: error: AttributeError: " in (said := capsys.readouterr().err)
    assert said.endswith("(layer.py, line 16)\n")
    assert rt_opt.main(["Wrong.onnx", "--shapes=x:4", *common]) == 1
    assert "Wrong (node 'it'): there is no layer 'trt.halve' (layer.py, line 24)" in capsys.readouterr().err


INTERPRETED = """\
from xdsl.dialects.builtin import TensorType
from xdsl.interpreter import InterpreterFunctions, impl, register_impls
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def

@irdl_op_definition
class HalfOp(IRDLOperation):
    name = "mine.half"
    input = operand_def(TensorType)
    output = result_def(TensorType)

@register_impls
class HalfFunctions(InterpreterFunctions):
    @impl(HalfOp)
    def run_half(self, interpreter, op, args):
        if args[0].max() > 5:
            raise ValueError("at most five")
        return (args[0] / 2,)
"""
HALVED = """\
func.func @main(%x: tensor<3xf32>) -> tensor<3xf32> {
  %y = "mine.half"(%x) : (tensor<3xf32>) -> tensor<3xf32>
  func.return %y : tensor<3xf32>
}
"""


def test_functions_of_an_interpreter_say_what_an_op_means(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    Path("interpreted.py").write_text(INTERPRETED, encoding="utf-8")
    Path("bare.py").write_text(INTERPRETED.replace("@impl(HalfOp)", ""), encoding="utf-8")
    Path("half.mlir").write_text(HALVED, encoding="utf-8")
    np.savez("x.npz", x=np.array([1, 2, 5], np.float32))
    np.savez("large.npz", x=np.array([1, 2, 6], np.float32))
    run = ["half.mlir", "--run=reference", "-o", "out.mlir", "--output=y.npz"]
    assert rt_opt.main([*run, "--load-pass-plugin=interpreted.py", "--input=x.npz"]) == 0
    np.testing.assert_array_equal(np.load("y.npz")["output0"], np.array([0.5, 1, 2.5], np.float32))
    capsys.readouterr()
    assert rt_opt.main([*run, "--load-pass-plugin=interpreted.py", "--input=large.npz"]) == 1
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "at most five" in said
    assert rt_opt.main([*run, "--load-pass-plugin=bare.py", "--input=x.npz"]) == 1
    assert "give its class a method reference" in capsys.readouterr().err


TACTIC = """\
from mlirt.dialects.fused.softmax import SoftmaxOp
OPS, TARGETS, PRIORITY = {tables}
def lower(op, lowering):
    return False
"""


@pytest.mark.parametrize(
    ("tables", "message"),
    [
        ("(SoftmaxOp,), {'cpu'}, 1", None),
        ("SoftmaxOp, {'cpu'}, 1", "tactic.py: tactic tactic: OPS: expected a tuple"),
        ("(SoftmaxOp,), {'tpu'}, 1", "TARGETS: expected a set of 'cpu' and 'cuda'"),
        ("(SoftmaxOp,), {'cpu'}, 'high'", "PRIORITY: expected a number"),
    ],
)
def test_tables_of_tactics(folder: Path, tables: str, message: str | None) -> None:
    path = folder / "tactic.py"
    path.write_text(TACTIC.format(tables=tables), encoding="utf-8")
    with using([path]) as (plugin,):
        if message is None:
            assert list(plugin_tactics(plugin)) == ["tactic"]
        else:
            with pytest.raises(InvalidInputError, match=message):
                plugin_tactics(plugin)


def test_a_tactic_of_a_name_that_is_taken(folder: Path) -> None:
    path = folder / "generic.py"
    path.write_text(TACTIC.format(tables="(SoftmaxOp,), {'cpu'}, 1"), encoding="utf-8")
    op = SoftmaxOp(create_ssa_value(tensor(f32, [4])), 0)
    assert "generic" in dict(tactics_for(op, Target("cpu")))
    with using([path]), pytest.raises(InvalidInputError, match="another tactic 'generic' of rows"):
        list(tactics_for(op, Target("cpu")))


def test_onnx_handlers(folder: Path) -> None:
    path = folder / "handlers.py"
    path.write_text(HANDLERS, encoding="utf-8")
    relu = handler_for("", "Relu", 17)
    with using([path]):
        found = handler_for("", "Relu", 17)
        assert found is not None
        assert found.__name__ == "mine"
        assert handler_for("my.domain", "MyOp", 3) is not None
        assert handler_for("my.domain", "MyOp", 2) is None
    assert handler_for("", "Relu", 17) is relu
    assert handler_for("my.domain", "MyOp", 3) is None


def test_contexts_are_apart(folder: Path) -> None:
    from threading import Thread

    seen: list[int] = []
    with using([written(folder)]):
        thread = Thread(target=lambda: seen.append(len(active())))
        thread.start()
        thread.join()
    assert seen == [0]
    assert pass_plugins.active() == ()
