"""The page of rt-opt --html has each change as a difference with its remarks, escaped; nothing comes from outside."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

import pytest
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.context import RtContext
from mlirt.passes.pipeline import PipelineOptions, run_passes
from mlirt.passes.remarks import Remarks, recording
from mlirt.tools import rt_opt
from mlirt.tools.input_files import InputFile, load_text, new_context
from mlirt.tools.pass_view.history import PassHistory, PassRecord, places_of
from mlirt.tools.pass_view.page import page
from mlirt.tools.pass_view.snapshots import OpText, Texts, legible

CHAIN = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %zero = trt.constant {value = dense<0.0> : tensor<4xf32>} : tensor<4xf32> loc("a<zero>")
  %a = trt.elementwise sum %x, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32> loc("add & go")
  %b = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32> loc("relu1")
  %c = trt.unary exp %b : (tensor<4xf32>) -> tensor<4xf32> loc("exp2")
  func.return %c : tensor<4xf32>
}
"""
BROWSERS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no Chromium on this machine")
PASSES = "cse,canonicalize,dce,convert-trt-to-fused,fuse-pointwise"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("chain.mlir").write_text(CHAIN, encoding="utf-8")
    return tmp_path


@dataclass
class Element:
    tag: str
    attributes: dict[str, str]
    text: str = ""
    children: list[Element] = field(default_factory=list["Element"])

    def all(self, tag: str, kind: str = "") -> list[Element]:
        """The elements of a tag inside, in order, those of a class where it is named."""
        found = [self] if self.tag == tag and kind in (*self.attributes.get("class", "").split(), "") else []
        return [*found, *(one for child in self.children for one in child.all(tag, kind))]

    def words(self) -> str:
        return self.text + "".join(child.words() for child in self.children)


class Tree(HTMLParser):
    """Parses a page strictly: each element has its end, and text belongs to the element that it is in."""

    VOID = frozenset({"meta", "input", "br", "link", "img"})

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("", {})
        self._open = [self.root]
        self.feed(text)
        self.close()
        assert self._open == [self.root], self._open[-1].tag

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        one = Element(tag, {name: value or "" for name, value in attrs})
        self._open[-1].children.append(one)
        if tag not in self.VOID:
            self._open.append(one)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open[-1].children.append(Element(tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self._open[-1].tag == tag, f"{self._open[-1].tag} is closed by {tag}"
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self._open[-1].children.append(Element("#text", {}, data))


def written(*flags: str) -> tuple[Element, str]:
    assert rt_opt.main(["chain.mlir", "--html=out/view", "-o", "/dev/null", *flags]) == 0
    text = Path("out/view/index.html").read_text(encoding="utf-8")
    return Tree(text).root, text


def passes_of(root: Element) -> dict[str, Element]:
    return {one.attributes["data-pass"]: one for one in root.all("section", "pass")}


def test_differences_and_remarks_are_at_their_pass(capsys: pytest.CaptureFixture[str]) -> None:
    root, _ = written("-p", PASSES)
    assert capsys.readouterr().err == ""  # remarks are in the page alone, unless they are asked for
    found = passes_of(root)
    assert list(found) == ["canonicalize", "dce", "convert-trt-to-fused", "fuse-pointwise"]
    folded = found["canonicalize"]
    assert folded.all("b")[0].words() == "2. canonicalize"
    removed = [one.words() for one in folded.all("del")]
    assert "- %a = trt.elementwise sum %x, %zero : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>" in removed
    assert [one.words() for one in found["dce"].all("del")] == [
        "- %zero = trt.constant {value = dense<0.000000e+00> : tensor<4xf32>} : tensor<4xf32>"
    ]
    fused = found["fuse-pointwise"]
    (place,) = [one for one in fused.all("details", "place") if one.all("ins")]
    assert {"relu1", "exp2"} & set(place.attributes["data-layers"].split())
    assert any("fused.pointwise" in one.words() for one in place.all("ins"))
    (remark,) = [one.words() for one in place.all("li") if one.words().startswith("applied")]
    assert "(fused.pointwise)" in remark
    (quiet,) = [one.words() for one in root.all("p") if one.words() == "cse"]
    assert quiet
    boxes = {one.attributes["class"] for one in found["canonicalize"].all("g")}
    assert {"gone", "near"} <= boxes


def test_names_are_escaped_and_nothing_is_loaded() -> None:
    root, text = written("-p", PASSES)
    assert "add & go" in {word for one in root.all("summary") for word in one.words().split(", ")}
    assert "a<zero>" not in text
    assert "a&lt;zero&gt;" in text
    assert not re.search(r"(?:src|href)=|https?://(?!www\.w3\.org)|@import|url\(", text)
    assert len(root.all("script")) == 1
    assert "prefers-color-scheme: dark" in text


def test_a_pass_that_only_declined_is_told_too() -> None:
    shared = CHAIN.replace("return %c : tensor<4xf32>", "return %b, %c : tensor<4xf32>, tensor<4xf32>").replace(
        "-> tensor<4xf32> {", "-> (tensor<4xf32>, tensor<4xf32>) {"
    )
    Path("chain.mlir").write_text(shared, encoding="utf-8")
    root, _ = written("-p", "canonicalize,dce,convert-trt-to-fused,fuse-pointwise")
    said = passes_of(root)["fuse-pointwise"]
    assert "changed nothing" in said.all("summary")[0].words()
    assert said.all("span", "declined")
    assert said.all("div", "place")[0].attributes["data-layers"]


def test_phases_are_named_and_numbers_are_those_of_pass_limit() -> None:
    root, _ = written("--to", "fusion")
    found = passes_of(root)
    (fusing,) = [one for name, one in found.items() if name.startswith("convert-trt-to-fused")]
    assert fusing.all("span", "phase")[0].words() == "fusion"
    number = int(fusing.attributes["id"].removeprefix("pass-"))
    for limit, has_layers in ((number - 1, True), (number, False)):
        assert rt_opt.main(["chain.mlir", "--to=fusion", f"--pass-limit={limit}", "-o", "cut.mlir"]) == 0
        assert ("trt.activation" in Path("cut.mlir").read_text(encoding="utf-8")) is has_layers


def test_a_pipeline_that_fails_leaves_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main(["chain.mlir", "--html=out", "-p", "canonicalize,verify-legality{phase=memory}"]) == 1
    error = capsys.readouterr().err.splitlines()[0]
    root = Tree(Path("out/index.html").read_text(encoding="utf-8")).root
    assert root.all("p", "error")[0].words().startswith(error.split(":")[0])
    assert list(passes_of(root)) == ["canonicalize"]


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--html=chain.mlir"], "--html=chain.mlir: chain.mlir is no folder"),
        (["--html=chain.mlir/a/b"], "--html=chain.mlir/a/b: chain.mlir is no folder"),
        (["--html=out", "--split-input-file"], "leave --split-input-file out"),
    ],
)
def test_mistakes(flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert rt_opt.main(["chain.mlir", "-p", "cse", *flags]) == 1
    assert message in capsys.readouterr().err


def loaded(text: str) -> tuple[ModuleOp, RtContext]:
    ctx = new_context()
    return load_text(ctx, text, InputFile("chain.mlir"))[0], ctx


def test_values_keep_their_names_from_pass_to_pass() -> None:
    module, ctx = loaded(CHAIN.replace("%c", "%0"))
    texts = Texts()
    before = texts.of(module)
    assert [one.key for one in texts.of(module)] == [one.key for one in before]
    run_passes(module, ctx, "canonicalize,dce")
    after = texts.of(module)
    assert len(after) < len(before)
    assert after[-1].text == before[-1].text
    assert [op.title for place in places_of(before, after) for op in place.inserted] == []


def test_texts_that_are_kept_are_those_that_printing_gives() -> None:
    module, ctx = loaded(CHAIN)
    remarks = Remarks()
    history = PassHistory(remarks)
    with recording(remarks):
        run_passes(module, ctx, PASSES, PipelineOptions(instruments=[history]))
    last = history.passes[-1].new
    assert [one.name for one in last] == ["fused.pointwise", "func.return"]
    assert "^bb0(%0: f32)" in last[0].text
    assert [one.text.split(" = ")[1] for one in Texts().of(module)[:1]] == [last[0].text.split(" = ")[1]]


def test_types_and_long_lists_are_legible() -> None:
    type_ = 'tensor<?x3x?xf32, #trt.dims<["n", "3", "2*h+1"]>>'
    assert legible(f"%a : {type_}") == "%a : tensor<nx3x(2*h+1)xf32>"
    assert legible('tensor<?x3xf32, #trt.dims<["n"]>>') == 'tensor<?x3xf32, #trt.dims<["n"]>>'
    assert legible(f"dense<[{'1.0, ' * 100}]>").endswith("..>")
    assert len(legible("x" * 5000)) == 602


def test_ops_that_only_moved_are_no_difference() -> None:
    old = [OpText(0, "a", ("one",), "a", ()), OpText(1, "b", ("two",), "b", (0,))]
    new = [OpText(2, "a", ("one",), "a", ()), OpText(3, "c", ("two",), "c", (2,))]
    (place,) = places_of(old, new)
    assert ([one.text for one in place.removed], [one.text for one in place.inserted]) == (["b"], ["c"])


def many(count: int) -> list[OpText]:
    return [
        OpText(k, "trt.unary", (f"layer{k}",), f"%{k} = trt.unary exp", (k - 1,) if k else ()) for k in range(count)
    ]


def test_long_pipelines_stay_small() -> None:
    old = many(300)
    new = [OpText(1000 + one.key, "fused.pointwise", one.layers, "+", ()) for one in old]
    record = PassRecord(1, "all", "all", places=places_of(old, new), old=old, new=new)
    text = page("x", [record, *(PassRecord(k, f"quiet{k}", "quiet") for k in range(2, 90))])
    assert len(record.places) == 300
    root = Tree(text).root
    assert len(root.all("details", "place")) == 300
    assert sum("open" in one.attributes for one in root.all("details", "place")) <= 6
    assert "quiet (88x)" in text
    assert len(text) < 1_000_000


def in_browser(text: str) -> str:
    """The page as a browser shows it, with what its scripts did."""
    assert BROWSER is not None
    Path("asked.html").write_text(text, encoding="utf-8")
    address = Path("asked.html").absolute().as_uri()
    profile = f"--user-data-dir={Path('profile').absolute()}"
    command = [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", profile, "--dump-dom", address]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


@needs_browser
def test_the_script_of_the_page_runs() -> None:
    """Its own security policy permits it: it has counted what is shown."""
    _, text = written("-p", PASSES)
    assert re.search(r'<output id="shown">\d+ passes, \d+ places</output>', in_browser(text))


@needs_browser
def test_filters_hide_what_does_not_fit() -> None:
    _, text = written("-p", PASSES)
    asked = '<script>document.getElementById("by-layer").value = "exp2"; filter();</script></body>'
    text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)  # which forbids scripts of others
    root = Tree(in_browser(text.replace("</body>", asked))).root
    shown = [name for name, one in passes_of(root).items() if "hidden" not in one.attributes]
    assert "dce" not in shown
    assert "fuse-pointwise" in shown
    places = [one for one in root.all("details", "place") if "hidden" not in one.attributes]
    assert all("exp2" in one.attributes["data-layers"] and "open" in one.attributes for one in places)
