"""rt-lab: both sides are compared, counted, estimated and measured; what is wrong is named, and so is a bad call."""

from __future__ import annotations

import json
import runpy
import sys
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import pytest
from cuda_presence import has_cuda

from mlirt.tools import rt_lab
from mlirt.tools.lab.costs import Costs
from mlirt.tools.lab.experiment import experiment_of, level_of
from mlirt.tools.lab.interleaving import Measured
from mlirt.tools.lab.picture import picture
from mlirt.tools.lab.ratio_statistics import Ratio
from mlirt.tools.lab.result import Result, Summary

PASSES = """\
from dataclasses import dataclass
from xdsl.passes import ModulePass
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.passes.remarks import applied, declined


class Rewrite(ModulePass):
    def apply(self, ctx, op):
        for layer in list(op.walk()):
            if isinstance(layer, ActivationOp):
                if layer.location.desc.data == "relu1":
                    declined(layer, "{} is not wanted", layer)
                    continue
                for bounds in self.chain:
                    source = layer.input if bounds is self.chain[0] else made.output
                    made = ActivationOp.build_inferred([source], dict(bounds), location=layer.location)
                    layer.parent.insert_op_before(made, layer)
                layer.output.replace_all_uses_with(made.output)
                layer.parent.erase_op(layer)
                applied(made)


@dataclass(frozen=True)
class ClipPass(Rewrite):
    name = "clip-relu"
    chain = ({"kind": "clip", "alpha": 0.0, "beta": 3e38},)
"""
WRONG = """

@dataclass(frozen=True)
class WrongPass(Rewrite):
    name = "wrong-relu"
    chain = ({"kind": "sigmoid"},)
"""
PLACED = '\n\nPIPELINE = "after=fuse-padding-convolution:clip-relu"\n'


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    script = Path(__file__).parents[3] / "examples" / "small_network.py"
    onnx.save(runpy.run_path(str(script))["small_network"](), "small.onnx")  # pyright: ignore[reportUnknownMemberType]
    Path("passes.py").write_text(PASSES, encoding="utf-8")
    Path("wrong.py").write_text(PASSES + WRONG, encoding="utf-8")
    return tmp_path


def records(path: str = "found.json") -> list[dict[str, Any]]:
    return json.loads(Path(path).read_text(encoding="utf-8"))["models"]


def test_a_pass_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--seconds=1", "--json=found.json", "--picture=found.svg", "--shapes=image:2x3x8x8"]
    assert rt_lab.main(["passes.py", "small.onnx", *flags]) == 0
    head, columns, row, *reasons = capsys.readouterr().out.splitlines()
    assert head.startswith("passes.py, cpu fp32: after=cleanup:clip-relu (a pass for trt ops goes there unless")
    assert columns.split()[:4] == ["model", "off", "applied", "declined"]
    assert row.split()[0] == "small.onnx"
    assert row.split()[2:4] == ["1", "1"]
    assert reasons == ["declined 1x: .. is not wanted"]
    (found,) = records()
    assert found["error"] is None
    assert (found["applied"], found["declined"], found["inserted"], found["erased"]) == (1, 1, 1, 1)
    measured = found["measured"]
    assert measured["interval"][0] < measured["ratio"] < measured["interval"][1]
    assert len(measured["sessions"]) >= 8
    assert 0.3 < measured["ratio"] < 3
    assert "passes.py on cpu" in Path("found.svg").read_text(encoding="utf-8")


def test_a_pass_that_changes_nothing_is_not_measured(capsys: pytest.CaptureFixture[str]) -> None:
    Path("passes.py").write_text(PASSES.replace('== "relu1"', '!= "none"'), encoding="utf-8")
    assert rt_lab.main(["passes.py", "small.onnx"]) == 0
    row = capsys.readouterr().out.splitlines()[2]
    assert row.endswith("the same kernels")


def test_a_pass_of_the_compiler_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_lab.main(["fuse-convolution-elementwise", "small.onnx", "--no-measure", "--json=found.json"]) == 0
    row = capsys.readouterr().out.splitlines()[2]
    assert row.endswith("not measured")
    (found,) = records()
    with_, without = found["with"], found["without"]
    assert with_["launches"] < without["launches"]
    assert with_["bytes"] < without["bytes"]
    assert with_["operations"] == without["operations"] == 2 * (16 * 27 * 64 + 16 * 144 * 64 + 64 * 10)
    assert found["estimated_ratio"] > 1


def test_wrong_results_are_named_and_the_others_go_on(capsys: pytest.CaptureFixture[str]) -> None:
    edit = "--pipeline-edit=after=cleanup:clip-relu,wrong-relu"
    Path("none.onnx").write_bytes(b"no model")
    assert rt_lab.main(["wrong.py", "small.onnx", "none.onnx", edit, "--no-measure"]) == 1
    out = capsys.readouterr().out.splitlines()
    assert out[2].endswith("wrong results")
    assert out[3].split() == ["none.onnx", "failed"]
    assert out[-2].startswith("small.onnx: error: output scores is 0.")
    assert out[-2].endswith("off the interpreted network, the bound is 0.001; rt-debug bisect tells where")
    assert out[-1].startswith("none.onnx: error: ")
    assert rt_lab.main(["wrong.py", "small.onnx", edit, "--no-measure", "--bound=10"]) == 0


@pytest.mark.skipif(has_cuda(), reason="a device would measure")
def test_without_a_device_estimates_remain(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--target=cuda", "--json=found.json"]
    assert rt_lab.main(["fuse-convolution-elementwise", "small.onnx", *flags]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1] == "no CUDA device is here: outputs are interpreted, times are estimates and none is measured"
    assert lines[3].endswith("not measured")
    (found,) = records()
    assert found["estimated_ratio"] > 1


def test_a_tactic_of_a_file(capsys: pytest.CaptureFixture[str]) -> None:
    text = """\
from mlirt.dialects.fused.window import WindowOp
from mlirt.kernels.window import generic
OPS, TARGETS, PRIORITY = (WindowOp,), frozenset({"cpu"}), 1000
lower = generic.lower
"""
    Path("tactic.py").write_text(text, encoding="utf-8")
    assert rt_lab.main(["tactic.py", "small.onnx", "--no-measure"]) == 0
    assert capsys.readouterr().out.startswith("tactic.py, cpu fp32: tactic\n")


def test_where_passes_go() -> None:
    assert [str(one) for one in experiment_of("passes.py", []).pipelines["with"].edits] == ["after=cleanup:clip-relu"]
    Path("placed.py").write_text(PASSES + PLACED, encoding="utf-8")
    placed = experiment_of("placed.py", [])
    assert placed.place == "after=fuse-padding-convolution:clip-relu (PIPELINE of the file)"
    given = experiment_of("placed.py", ["after=cse#1:clip-relu"])
    assert given.place == "after=cse#1:clip-relu (--pipeline-edit)"
    for level, line in (("fused", "from mlirt.dialects.fused.window import WindowOp"), ("trt", "import mlirt"),
                        ("kernel", "import mlirt.dialects.kernel.core")):  # fmt: skip
        Path("level.py").write_text(f"{line}\n", encoding="utf-8")
        assert level_of(Path("level.py")) == level


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none.py", "small.onnx"], "PASS_FILE=none.py: there is no such file"),
        (["fuse-pointwis", "small.onnx"], "there is no pass 'fuse-pointwis'; did you mean fuse-pointwise"),
        (["small.onnx", "small.onnx"], "expected a Python file of passes, whose name ends in .py, or a pass's name"),
        (["passes.py"], "the following arguments are required: MODEL"),
        (["passes.py", "small.onnx", "--picture=a.png"], "expected a name that ends in .svg"),
        (["passes.py", "small.onnx", "--json=no/a.json"], "cannot write no/a.json: there is no such folder"),
        (["passes.py", "small.onnx", "--resolution=0"], "expected a number above 0"),
        (["passes.py", "small.onnx", "--pipeline-edit=after=cse#1:dce"], "leaves clip-relu out"),
        (["cse", "small.onnx", "--pipeline-edit=after=cse#1:dce"], "--pipeline-edit is for a file of passes"),
        (["passes.py", "small.onnx", "--no-measure", "--shapes=x:1"], "no model has an input 'x'; theirs are image"),
    ],
)
def test_mistakes(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_lab.main(arguments) == 1
    err = capsys.readouterr().err
    assert message in err
    assert err.count("\n") == 1


def test_files_that_bring_nothing_or_too_much(capsys: pytest.CaptureFixture[str]) -> None:
    Path("empty.py").write_text("x = 1\n", encoding="utf-8")
    Path("numbers.py").write_text(f"{PASSES}\nPIPELINE = [1]\n", encoding="utf-8")
    for name, message in (("empty.py", "brings no pass and no tactic"), ("numbers.py", "expected edits such as")):
        assert rt_lab.main([name, "small.onnx"]) == 1
        assert message in capsys.readouterr().err


def result(name: str, value: float, width: float) -> Result:
    ratio = Ratio(value, value * (1 - width), value * (1 + width), 8, 80)
    costs = Costs(3, 1000, 2000, 10.0)
    return Result(
        name, measured=Measured(1e-3, ratio, []), without=costs, with_=costs, reasons=[("declined", "why", 2)]
    )


def test_the_picture_has_a_line_for_each_network_and_is_escaped() -> None:
    results = [result("a<b>.onnx", 1.5, 0.1), result("slow.onnx", 0.7, 0.05), result("even.onnx", 1.01, 0.05)]
    results += [Result("failed.onnx", error="no such file")]
    root = ElementTree.fromstring(picture("x & y", results))
    texts = [one.text for one in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"x & y", "a<b>.onnx", "1.500 faster", "0.700 slower", "failed"} <= set(texts)
    dots = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    assert [one.get("class") for one in dots] == ["faster", "slower", "none"]
    across = [float(one.get("cx", "nan")) for one in dots]
    assert across[1] < across[2] < across[0]
    assert texts.index("1") > 0


@pytest.mark.parametrize("values", [(1.001, 1.0), (1.2, 0.9), (3.0, 1.0), (40.0, 0.02)])
def test_scales_of_pictures_have_readable_ticks(values: Sequence[float]) -> None:
    text = picture("x", [result(str(value), value, 0.001) for value in values])
    ticks = [float(part.split("<")[0]) for part in text.split('text-anchor="middle">')[1:]]
    assert 1 in ticks
    assert 3 <= len(ticks) <= 9
    assert ticks == sorted(ticks)


def test_the_summary_names_what_failed() -> None:
    summary = Summary(
        ["head"], [result("a.onnx", 1.5, 0.1), Result("b.onnx", error="broken"), result("c.onnx", 1, 0.1)]
    )
    lines = summary.lines()
    assert lines[2].endswith("1.500  [1.350, 1.650]  faster")
    assert lines[-2:] == ["declined 4x: why", "b.onnx: error: broken"]
    assert [one.verdict for one in summary.results] == ["faster", "failed", "no difference that could be shown"]


def test_a_negative_number_of_seconds_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_lab.main(["dce", "model.onnx", "--seconds=-1"]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("rt-lab: error: argument --seconds: expected a number of at least 0, got '-1'")
