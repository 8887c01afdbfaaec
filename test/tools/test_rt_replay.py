"""rt-replay: records of what networks become, and what differs between two of them."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from mlirt.tools import rt_replay

ROOT = Path(__file__).parents[2]
NETWORK = """\
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x6xf32>) -> tensor<8x6xf32> {
  %y = trt.unary sqrt %x : (tensor<8x4xf32>) -> tensor<8x4xf32> loc("root")
  %z = trt.matrix_multiply %y, %w : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32> loc("product")
  func.return %z : tensor<8x6xf32>
}
"""
PLUGIN = '''\
from dataclasses import dataclass

from xdsl.passes import ModulePass

from mlirt.dialects.trt.unary import UnaryOp


@dataclass(frozen=True)
class ExpForRootPass(ModulePass):
    """Another function in place of the root."""

    name = "exp-for-root"

    def apply(self, ctx, op):
        for layer in [inner for inner in op.walk() if isinstance(inner, UnaryOp)]:
            made = UnaryOp.build_inferred([layer.operands[0]], {"kind": "exp"}, location=layer.location)
            layer.parent.insert_op_before(made, layer)
            layer.results[0].replace_all_uses_with(made.results[0])
            layer.parent.erase_op(layer)
'''
EDIT = "--pipeline-edit=after=fuse-padding-convolution:exp-for-root"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("net.mlir").write_text(NETWORK, encoding="utf-8")
    Path("plugin.py").write_text(PLUGIN, encoding="utf-8")
    return tmp_path


def _said(*arguments: str, capsys: pytest.CaptureFixture[str], code: int = 0) -> str:
    assert rt_replay.main(arguments) == code
    said = capsys.readouterr()
    return said.out + said.err


def test_nothing_changes_by_itself(capsys: pytest.CaptureFixture[str]) -> None:
    assert not _said("record", "net.mlir", "-o", "a.json", capsys=capsys)
    first = Path("a.json").read_bytes()
    said = _said("compare", "a.json", capsys=capsys)
    assert re.fullmatch(r"the IR of 0 of 2 networks, 0 of \d lists of estimates, 0 of \d kernels changed\n", said)
    assert not _said("record", "a.json", capsys=capsys)
    assert Path("a.json").read_bytes() == first
    labels = json.loads(first)["networks"]["net for cuda"]
    assert {"phase cleanup", "phase memory", "estimates of product", "kernel of root", "kernel of product"} <= set(
        labels
    )


def test_what_a_pass_changes(capsys: pytest.CaptureFixture[str]) -> None:
    targets = "--target=cpu,cuda:fp16"
    _said("record", "net.mlir", "-o", "a.json", targets, "--texts", capsys=capsys)
    _said("record", "net.mlir", "-o", "b.json", targets, "--texts", "--load-pass-plugin=plugin.py", EDIT, capsys=capsys)
    said = _said("compare", "a.json", "b.json", capsys=capsys, code=1)
    assert "net for cpu: kernel of root: changed\n" in said
    assert "kernel of product" not in said
    assert "\n--- net for cpu: kernel of root\n+++ net for cpu: kernel of root\n" in said
    assert "net for cuda:fp16: phase cleanup: changed\n" in said
    assert "phase fusion" not in said  # only the first phase that differs
    removed, added = ([line for line in said.splitlines() if line.startswith(sign)] for sign in "-+")
    assert any("sqrt(" in line for line in removed)
    assert any("exp(" in line for line in added)
    assert not any("+def pointwise_" in line or "-def pointwise_" in line for line in said.splitlines())
    ir = _said("compare", "a.json", "b.json", "--ir", capsys=capsys, code=1)
    assert '-    %y = trt.unary sqrt %x : (tensor<8x4xf32>) -> tensor<8x4xf32> loc("root")' in ir
    page = "page.html"
    assert "\n--- " not in _said("compare", "a.json", "b.json", "--html", page, capsys=capsys, code=1)
    html = Path(page).read_text(encoding="utf-8")
    assert html.count("<h2>") == said.count("\n--- ")
    assert re.search(r'<td class="old">[^<]*sqrt\([^<]*</td><td class="new">[^<]*exp\(', html)
    # A record with a plugin is made again with it, and another file of it keeps its models' paths.
    Path("other").mkdir()
    _said("record", "b.json", "-o", "other/b.json", "--texts", capsys=capsys)
    assert "0 of 4 kernels changed" in _said("compare", "b.json", "other/b.json", capsys=capsys)
    assert "0 of 4 kernels changed" in _said("compare", "other/b.json", capsys=capsys)


def test_without_texts_the_kernels_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    _said("record", "net.mlir", "-o", "a.json", "--target=cpu", capsys=capsys)
    Path("net.mlir").write_text(NETWORK.replace("sqrt", "exp"), encoding="utf-8")
    said = _said("compare", "a.json", capsys=capsys, code=1)
    assert "net for cpu: kernel of root: changed\n" in said
    assert "1 of 2 kernels changed\nfor the texts: rt-replay compare a.json --since=HEAD" in said


def test_since_a_revision(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _said("record", "net.mlir", "-o", "a.json", "--target=cpu", capsys=capsys)
    (folder / "src").mkdir()
    (folder / "src" / "mlirt").symlink_to(ROOT / "src" / "mlirt")
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *command], check=True, capture_output=True)
    Path("net.mlir").write_text(NETWORK.replace("sqrt", "exp"), encoding="utf-8")
    said = _said("compare", "a.json", "--since=HEAD", capsys=capsys, code=1)
    assert "--- net for cpu: kernel of root\n" in said
    (line,) = _said("compare", "a.json", "--since=nowhere", capsys=capsys, code=1).splitlines()
    assert line == "rt-replay: error: --since: git rev-parse nowhere^{commit}: nothing found"


def test_networks_that_a_file_makes(capsys: pytest.CaptureFixture[str]) -> None:
    text = "from family_models import FAMILIES\nNETWORKS = {'rows': lambda: FAMILIES['softmax']()[0]}\n"
    Path("many.py").write_text(text, encoding="utf-8")
    _said("record", "many.py", "net.mlir", "-o", "a.json", "--target=cuda", capsys=capsys)
    assert list(json.loads(Path("a.json").read_text())["networks"]) == ["rows for cuda", "net for cuda"]


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["record", "net.mlir"], "record writes a file: add -o FILE.json"),
        (["record", "net.txt", "-o", "a.json"], "net.txt: expected a name that ends in .onnx, .mlir, .py, or a record"),
        (["record", "no.mlir", "-o", "a.json"], "no.mlir: there is no such file"),
        (
            ["record", "net.mlir", "net.mlir", "-o", "a.json"],
            "two networks are called net: give one of",
        ),
        (
            ["record", "net.mlir", "-o", "a.json", "--target=tpu"],
            "--target=tpu: expected cpu or cuda, alone",
        ),
        (["record", "plugin.py", "-o", "a.json"], "plugin.py: expected a table NETWORKS of functions that give ONNX"),
        (["record", "net.mlir", "-o", "a.json", "--ir"], "--ir is for rt-replay compare"),
        (["compare", "net.mlir"], "net.mlir is no record: expected the JSON that rt-replay record writes"),
        (["compare", "no.json"], "no.json: cannot read the file: No such file or directory"),
        (
            ["compare", "a.json", "b.json", "c.json"],
            "compare takes a record and another one",
        ),
        (["replay"], "argument command: invalid choice: 'replay' (choose from 'record', 'compare')"),
    ],
)
def test_mistakes(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    (said,) = _said(*arguments, capsys=capsys, code=1).splitlines()
    assert said.startswith(f"rt-replay: error: {line}")


def test_damaged_texts(capsys: pytest.CaptureFixture[str]) -> None:
    _said("record", "net.mlir", "-o", "a.json", "--target=cpu", "--texts", capsys=capsys)
    kept = json.loads(Path("a.json").read_text())
    for wrong in ("", kept["texts"][:-9]):
        Path("b.json").write_text(json.dumps({**kept, "texts": wrong}))
        said = _said("compare", "a.json", "b.json", capsys=capsys, code=1)
        assert said == "rt-replay: error: b.json: its texts are damaged; record it again\n"
