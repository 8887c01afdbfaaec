"""Passes from files and changes to the pipeline, in the tools and in `mlirt.compile`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, cast

import numpy as np
import onnx
import pytest
from onnx_models import model_of, write_model

import mlirt
from mlirt.runtime.plan_file import write_plan
from mlirt.tools import rt_exec, rt_opt, rt_report

NEGATE = '''\
"""Every ReLU is negated, which a test sees in the numbers."""

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from mlirt.dialects.trt.activation import ActivationOp
from mlirt.dialects.trt.unary import UnaryOp


@dataclass(frozen=True)
class NegateReluPass(ModulePass):
    """Negate the result of each ReLU, `times` times. A second sentence."""

    name = "negate-relu"
    times: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for layer in list(op.walk()):
            if isinstance(layer, ActivationOp):
                for _ in range(self.times):
                    made = UnaryOp.build_inferred([layer.output], {"kind": "neg"}, location=layer.location)
                    layer.output.replace_all_uses_with(made.output)
                    made.operands[0] = layer.output
                    layer.parent.insert_op_after(made, layer)
'''
EDIT = "after=fuse-padding-convolution:negate-relu"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    node = onnx.helper.make_node("Relu", ["x"], ["y"], name="relu")
    write_model(model_of([node], {"x": ("float32", [3])}, ["y"], {}), tmp_path / "a.onnx")
    Path("negate.py").write_text(NEGATE, encoding="utf-8")
    Path("empty.py").write_text("", encoding="utf-8")
    return tmp_path


X = np.array([1.0, -2.0, 3.0], np.float32)


@pytest.mark.usefixtures("folder")
def test_rt_opt_finds_the_pass_by_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    plugin = "--load-pass-plugin=negate.py"
    assert rt_opt.main(["a.onnx", plugin, "-p", "negate-relu{times=2}"]) == 0
    assert capsys.readouterr().out.count("trt.unary neg") == 2
    assert rt_opt.main(["a.onnx", plugin, "--to=cleanup", f"--pipeline-edit={EDIT}"]) == 0
    assert capsys.readouterr().out.count("trt.unary neg") == 1
    assert rt_opt.main(["--list-passes", plugin]) == 0
    assert "  negate-relu                        Negate the result of each ReLU, `times` times.\n" in (
        capsys.readouterr().out
    )
    assert rt_opt.main(["--help-pass=negate-relu", plugin]) == 0
    assert "options:\n  times: int = 1\n" in capsys.readouterr().out
    assert rt_opt.main(["a.onnx", "-p", "negate-relu"]) == 1
    assert capsys.readouterr().err.startswith("rt-opt: error: there is no pass 'negate-relu'")


@pytest.mark.usefixtures("folder")
def test_the_pipeline_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["a.onnx", "--load-pass-plugin=negate.py", "--to=cleanup", f"--pipeline-edit={EDIT}"]
    assert rt_opt.main([*arguments, "--dump-pass-pipeline", "-o", "b.mlir"]) == 0
    import_line, cleanup = capsys.readouterr().err.splitlines()
    assert import_line == "import: verify-legality{phase=import}"
    assert ",fuse-padding-convolution,negate-relu,fold-pooling-into-convolution," in cleanup


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--load-pass-plugin=none.py"], "--load-pass-plugin=none.py: there is no such file"),
        (["-p", "canonicalize,"], "a name is missing in the pipeline 'canonicalize,'"),
        (["-p", "fuse-pointwise{max-ops=-3}"], "pass fuse-pointwise: option max-ops is -3, expected at least 1"),
        (["--pipeline-edit=after=cse#1:dce"], "changes the compiler's phases, and none run: add --to=PHASE"),
        (["--pipeline-edit=after=sink-views:dce", "--to=cleanup"], "phase fusion does not run here"),
        (["--pipeline-edit=aftr=sink-views:dce", "--to=fusion"], "did you mean after?"),
        (["--pipeline-edits=after=sink-views:dce"], "did you mean --pipeline-edit?"),
        (["--to=cleanups"], "there is no phase 'cleanups'"),
    ],
)
def test_mistakes_of_rt_opt(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main(["a.onnx", *arguments]) == 1
    err = capsys.readouterr().err
    assert err.startswith("rt-opt: error: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.usefixtures("folder")
def test_a_file_that_brings_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main(["a.onnx", "--load-pass-plugin=empty.py"]) == 0
    assert capsys.readouterr().err.startswith("warning: --load-pass-plugin=empty.py brings nothing")


@pytest.mark.usefixtures("folder")
def test_a_pass_at_the_wrong_level(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main(["a.onnx", "-p", "fuse-pointwise"]) == 0
    assert capsys.readouterr().err == (
        "warning: pass fuse-pointwise works on fused ops, but the IR holds trt ops: "
        "run convert-trt-to-fused before it\n"
    )


@pytest.mark.usefixtures("folder")
def test_what_is_illegal_after_a_phase_names_the_change(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main(["a.onnx", "--to=fusion", "--pipeline-edit=without=convert-trt-to-fused"]) == 1
    err = capsys.readouterr().err
    assert "is left after phase fusion" in err
    assert "the pipeline was changed: without=convert-trt-to-fused" in err


@pytest.mark.usefixtures("folder")
def test_compile_and_the_plan() -> None:
    pipeline = mlirt.Pipeline.default().after("fuse-padding-convolution", "negate-relu")
    engine = mlirt.compile("a.onnx", "cpu", plugins=["negate.py"], pipeline=pipeline, refittable=True)
    assert engine.run({"x": X})["y"].tolist() == [-1.0, 0.0, -3.0]
    assert isinstance(engine, mlirt.Engine)
    assert "fuse-padding-convolution,negate-relu," in engine.pipeline
    engine.save("a.plan")
    loaded = mlirt.load("a.plan")
    assert loaded.pipeline == engine.pipeline
    record = cast("dict[str, Any]", loaded.plan.manifest.info["pipeline"])
    assert record["edits"] == [EDIT]
    assert list(record["plugins"]) == ["negate.py"]
    with pytest.raises(mlirt.InvalidInputError, match=r"built with the pass plugin negate.py: give it as plugins="):
        mlirt.refit(loaded, {})
    again = mlirt.refit(loaded, {}, plugins=["negate.py"])
    assert again.run({"x": X})["y"].tolist() == [-1.0, 0.0, -3.0]
    Path("negate.py").write_text(NEGATE + "\n# changed\n", encoding="utf-8")
    with pytest.raises(mlirt.InvalidInputError, match="that file has changed since"):
        mlirt.refit(loaded, {}, plugins=["negate.py"])


@pytest.mark.usefixtures("folder")
def test_plugins_of_one_file_name() -> None:
    Path("other").mkdir()
    Path("other/negate.py").write_text(NEGATE.replace('"negate-relu"', '"negate-again"'), encoding="utf-8")
    files = ["negate.py", "other/negate.py"]
    pipeline = mlirt.Pipeline.default().after("fuse-padding-convolution", "negate-relu,negate-again")
    engine = mlirt.compile("a.onnx", "cpu", plugins=files, pipeline=pipeline, refittable=True)
    assert isinstance(engine, mlirt.Engine)
    assert engine.run({"x": X})["y"].tolist() == [1.0, 0.0, 3.0]
    with pytest.raises(mlirt.InvalidInputError, match="that file has changed since"):
        mlirt.refit(engine, {}, plugins=files[1:])
    assert mlirt.refit(engine, {}, plugins=files).run({"x": X})["y"].tolist() == [1.0, 0.0, 3.0]


@pytest.mark.usefixtures("folder")
def test_plans_without_changes_are_as_before(tmp_path: Path) -> None:
    def plan_bytes(**options: object) -> bytes:
        engine = mlirt.compile("a.onnx", "cpu", **options)  # pyright: ignore[reportArgumentType]
        assert isinstance(engine, mlirt.Engine)
        path = tmp_path / "some.plan"
        write_plan(path, engine.plan.manifest_json, engine.plan.sections, engine.plan.weights)
        return path.read_bytes()

    plain = plan_bytes()
    assert b'"pipeline"' not in plain
    assert plan_bytes(pipeline=mlirt.Pipeline.default()) == plain
    assert plan_bytes(pipeline=mlirt.Pipeline.default().without("sink-views")) != plain
    assert plan_bytes() == plain


@pytest.mark.usefixtures("folder")
def test_mistakes_of_compile() -> None:
    with pytest.raises(mlirt.InvalidInputError, match="there is no pass 'negate-relu'"):
        mlirt.compile("a.onnx", "cpu", pipeline=mlirt.Pipeline().after("sink-views", "negate-relu"))
    with pytest.raises(mlirt.InvalidInputError, match=r"pipeline: expected a mlirt.Pipeline, or a list of edits"):
        mlirt.compile("a.onnx", "cpu", pipeline="cse,dce")  # pyright: ignore[reportArgumentType]
    with pytest.raises(mlirt.InvalidInputError, match="after: expected the passes as a text"):
        mlirt.Pipeline().after("cse#1", ["dce"])  # pyright: ignore[reportArgumentType]
    with pytest.raises(mlirt.InvalidInputError, match="target reference runs the network without passes"):
        mlirt.compile("a.onnx", "reference", pipeline=mlirt.Pipeline().without("sink-views"))
    with pytest.warns(UserWarning, match="fuse-pointwise works on fused ops"):
        mlirt.compile("a.onnx", "cpu", pipeline=mlirt.Pipeline().before("cleanup", "fuse-pointwise"))


@pytest.mark.usefixtures("folder")
def test_rt_report() -> None:
    arguments = ["a.onnx", "--target=cpu", "--runs=0", "--load-pass-plugin=negate.py", "-o", "a.html"]
    assert rt_report.main([*arguments, f"--pipeline-edit={EDIT}"]) == 0
    assert "negate-relu" in Path("a.html").read_text(encoding="utf-8")


@pytest.mark.usefixtures("folder")
def test_rt_exec(capfd: pytest.CaptureFixture[str]) -> None:
    built = ["--onnx=a.onnx", "--target=cpu", "--buildOnly"]
    arguments = ["--load-pass-plugin=negate.py", f"--pipeline-edit={EDIT}", "--saveEngine=a.plan"]
    assert rt_exec.main([*built, *arguments]) == 0
    assert mlirt.load("a.plan").run({"x": X})["y"].tolist() == [-1.0, 0.0, -3.0]
    capfd.readouterr()
    for wrong, message in (
        ("--pipeline-edit=after=sink-view:dce", "did you mean sink-views?"),
        (f"--pipeline-edit={EDIT}", "there is no pass 'negate-relu'"),
        ("--load-pass-plugin=none.py", "--load-pass-plugin=none.py: there is no such file"),
    ):
        assert rt_exec.main([*built, wrong]) == 1
        assert message in capfd.readouterr().err
    assert rt_exec.main(["--loadEngine=a.plan", f"--pipeline-edit={EDIT}"]) == 1
    assert "--pipeline-edit is for building" in capfd.readouterr().err


TACTIC = """\
from mlirt.dialects.fused.pointwise import PointwiseOp
from mlirt.kernels.pointwise import generic

OPS = (PointwiseOp,)
TARGETS = frozenset({"cpu"})
PRIORITY = 1000
taken = []


def lower(op, lowering):
    taken.append(op.name)
    return generic.lower(op, lowering)
"""


@pytest.mark.usefixtures("folder")
def test_a_tactic_of_a_file() -> None:
    from mlirt.dialects.pass_plugins import load

    Path("mine.py").write_text(TACTIC, encoding="utf-8")
    mlirt.compile("a.onnx", "cpu", plugins=["mine.py"])
    taken = load(Path("mine.py")).module.__dict__["taken"]
    assert taken == ["fused.pointwise"]
    mlirt.compile("a.onnx", "cpu")
    assert taken == ["fused.pointwise"]


@pytest.mark.usefixtures("folder")
def test_start_up(record_property: pytest.FixtureRequest) -> None:
    """CPU seconds of rt-opt with a plugin, as a figure; nothing heavy is imported for it."""
    Path("b.mlir").write_text("func.func @main() {\n  func.return\n}\n", encoding="utf-8")
    script = (
        "import sys, time; from mlirt.tools.rt_opt import main; code = main(sys.argv[1:]);"
        "heavy = [name for name in ('numpy', 'onnx', 'numba', 'llvmlite') if name in sys.modules];"
        "print(heavy, time.process_time(), file=sys.stderr); sys.exit(code)"
    )
    command = [sys.executable, "-c", script, "b.mlir", "--load-pass-plugin=light.py", "-p", "mine"]
    Path("light.py").write_text(
        "from dataclasses import dataclass\nfrom xdsl.passes import ModulePass\n\n@dataclass(frozen=True)\n"
        "class MinePass(ModulePass):\n    name = 'mine'\n    def apply(self, ctx, op):\n        pass\n"
    )
    start = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    heavy, seconds = done.stderr.rsplit(maxsplit=1)
    assert heavy == "[]"
    record_property("rt_opt_with_plugin_cpu_seconds", float(seconds))  # pyright: ignore[reportCallIssue]
    print(f"rt-opt with a plugin: {seconds} s CPU, {time.perf_counter() - start:.2f} s in all")


@pytest.mark.usefixtures("folder")
def test_a_failing_pass_of_a_file_is_reproduced_with_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("fails.py").write_text(NEGATE.replace('"kind"', '"kinds"'), encoding="utf-8")
    assert rt_opt.main(["a.onnx", "--load-pass-plugin=fails.py", "-p", "negate-relu"]) == 1
    said, reproducer = capsys.readouterr().err.strip().rsplit("; reproducer: ", 1)
    assert said.endswith("(fails.py, line 24)")
    run = Path(reproducer).read_text(encoding="utf-8").splitlines()[0]
    assert run == f"// RUN: rt-opt %s --load-pass-plugin={Path('fails.py').resolve()} -p 'negate-relu'"


RELU_BEHIND_TWO = """
func.func @main(%x: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %w = trt.constant {value = dense<0.5> : tensor<8x8xf32>} : tensor<8x8xf32>
  %a = trt.matrix_multiply %x, %w : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32> loc("product")
  // expected-remark@+1 {{fuse-convolution-activation: declined: relu (fused.pointwise): product has other readers}}
  %b = trt.activation relu %a : (tensor<4x8xf32>) -> tensor<4x8xf32> loc("relu")
  func.return %a, %b : tensor<4x8xf32>, tensor<4x8xf32>
}
"""


@pytest.mark.usefixtures("folder")
def test_remarks_of_rt_opt(capsys: pytest.CaptureFixture[str]) -> None:
    Path("r.mlir").write_text(RELU_BEHIND_TWO, encoding="utf-8")
    passes = ["-p", "convert-trt-to-fused,fuse-convolution-activation"]
    assert rt_opt.main(["--remarks", "r.mlir", *passes, "--remarks-output=r.json"]) == 0
    assert capsys.readouterr().err == (
        "r.mlir:6:3: remark: fuse-convolution-activation: declined: relu (fused.pointwise): product has other readers\n"
    )
    (record,) = json.loads(Path("r.json").read_text(encoding="utf-8"))["remarks"]
    assert (record["kind"], record["layer"], record["place"]) == ("declined", "relu", "r.mlir:6:3")
    assert rt_opt.main(["r.mlir", *passes, "--remarks=fuse-attention", "--statistics"]) == 0
    table = capsys.readouterr().err
    assert "remark" not in table
    assert table.splitlines()[1].endswith("  convert-trt-to-fused")
    assert rt_opt.main(["r.mlir", *passes, "--remarks", "--verify-diagnostics"]) == 0
    assert rt_opt.main(["r.mlir", "-p", "convert-trt-to-fused", "--remarks", "--verify-diagnostics"]) == 1
    assert "was not produced" in capsys.readouterr().err
    assert rt_opt.main(["r.mlir", "-p", "cse", "--remarks=fuse-atention"]) == 1
    assert "did you mean fuse-attention" in capsys.readouterr().err


SAYS = """\
from dataclasses import dataclass
from xdsl.passes import ModulePass
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.passes.remarks import declined


@dataclass(frozen=True)
class SayPass(ModulePass):
    name = "say"

    def apply(self, ctx, op):
        for layer in op.walk():
            if isinstance(layer, ActivationOp):
                declined(layer, "only a test of {}", layer)
"""


@pytest.mark.usefixtures("folder")
def test_remarks_of_builds(capfd: pytest.CaptureFixture[str]) -> None:
    Path("say.py").write_text(SAYS, encoding="utf-8")
    found = mlirt.Remarks(passes=["say"])
    pipeline = mlirt.Pipeline.default().after("fuse-padding-convolution", "say")
    mlirt.compile("a.onnx", "cpu", plugins=["say.py"], pipeline=pipeline, remarks=found)
    assert [str(one) for one in found.remarks] == ["say: declined: relu (trt.activation): only a test of relu"]
    mlirt.compile("a.onnx", "cpu", plugins=["say.py"], pipeline=pipeline)
    assert len(found.remarks) == 1
    built = ["--onnx=a.onnx", "--target=cpu", "--buildOnly", "--load-pass-plugin=say.py"]
    edit = "--pipeline-edit=after=fuse-padding-convolution:say"
    assert rt_exec.main([*built, edit, "--remarks=say", "--statistics", "--remarks-output=r.json"]) == 0
    out = capfd.readouterr().out
    assert "[I] remark: say: declined: relu (trt.activation): only a test of relu" in out
    assert "runs   applied  declined    missed" in out
    assert json.loads(Path("r.json").read_text(encoding="utf-8"))["statistics"]["say"]["declined"] == 1
