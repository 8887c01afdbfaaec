"""What the tools say of themselves is made of whole sentences, and each mistake with flags and files is one line."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from mlirt.passes import registry
from mlirt.tools.rt_opt_arguments import pass_help, pass_list

ROOT = Path(__file__).parents[2]
TOOLS = sorted(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["scripts"])
_SECTION = re.compile(r"^\S.*:$")
_FLAG = re.compile(r"^  (?=\S)(?P<flags>(?:\S| (?! ))+)(?:  +(?P<help>\S.*))?$")


def _main(tool: str, arguments: list[str]) -> int:
    code: int = import_module(f"mlirt.tools.{tool.replace('-', '_')}").main(arguments)
    return code


def _help_of(tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """What --help says of each flag, in lines that are not broken."""
    monkeypatch.setenv("COLUMNS", "2000")
    assert _main(tool, ["--help"]) == 0
    lines = capsys.readouterr().out.partition("\npasses:\n")[0].splitlines()
    found = dict[str, str]()
    for number, line in enumerate(lines[2:], start=2):
        match = _FLAG.match(line)
        if match is not None:
            found[match["flags"]] = match["help"] or lines[number + 1].strip()
    assert any(_SECTION.match(line) for line in lines)
    return found


def _problem(sentence: str) -> str:
    """What is wrong with a sentence; empty where nothing is."""
    if not sentence.endswith(".") or sentence.endswith(("...", " .")):
        return "does not end with one period"
    if (
        any(sentence.count(one) != sentence.count(other) for one, other in ("()", "[]", "{}"))
        or sentence.count("`") % 2
    ):
        return "is cut within brackets or quotes"
    if len(sentence.split()) < 2 or sentence.lower().startswith("default"):
        return "says nothing"
    first = sentence.split()[0].rstrip(",:;.")
    return "begins with a small letter" if first.isalpha() and first.islower() and ":" not in sentence else ""


@pytest.mark.parametrize("tool", TOOLS)
def test_every_flag_is_described_by_a_sentence(
    tool: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    found = _help_of(tool, monkeypatch, capsys)
    assert len(found) > 2
    assert {flags: text for flags, text in found.items() if _problem(text)} == {}


def test_the_test_sees_what_is_wrong() -> None:
    right = ("Print the time of each pass.", "+x measures none (CUDA).", "record: keep the texts.")
    wrong = ("Print the time of", "Default: cpu.", "Print (the time.", "print the time.", "Print ...", "Print `a.")
    assert not any(map(_problem, right))
    assert all(map(_problem, wrong))


def test_every_pass_is_listed_with_a_sentence() -> None:
    own = [line.split(maxsplit=1) for line in pass_list().partition("\n\n")[0].splitlines()]
    assert sorted(name for name, _ in own) == list(registry.pass_names())
    assert {name: summary for name, summary in own if _problem(summary)} == {}


@pytest.mark.parametrize("name", sorted({*registry.pass_names(), *registry.stock_passes()}))
def test_help_of_every_pass(name: str) -> None:
    text, _, options = pass_help(name).partition("\noptions:\n")
    heading, _, body = text.partition("\n\n")
    assert heading == name
    assert len(body.split()) > 1
    for line in options.splitlines():
        option = re.fullmatch(r"  [a-z][\w-]*: (?P<type>[^=(]+?)( = .*?)?( \(.*\))?", line)
        assert option is not None, line
        assert re.fullmatch(r"[\w|]+(,\.\.)?( or [\w|]+(,\.\.)?)*", option["type"]), f"{line}: a type without quotes"


MISTAKES: dict[str, tuple[list[str], ...]] = {
    "rt-opt": (["no.mlir"], ["--target=gpu"], ["-p", "nothing"], ["--to=nowhere"], ["--help-pass=nothing"]),
    "rt-translate": ([], ["--import-onnx", "no.onnx"], ["--emit-python=c"], ["--print-pipeline", "--to=nowhere"]),
    "rt-exec": ([], ["--onnx=no.onnx"], ["--onnx=no.onnx", "--target=gpu"], ["--loadEngine=no.plan"]),
    "rt-report": ([], ["no.plan", "-o", "page.html"], ["no.plan", "-o", "nowhere/page.html"]),
    "rt-debug": ([], ["compare", "no.onnx"], ["compair", "no.onnx"], ["reduce", "no.onnx"], ["bisect", "no.onnx"]),
    "rt-replay": ([], ["replay", "a.json"], ["compare", "no.json"], ["record", "no.onnx", "-o", "a.json"]),
    "rt-update-checks": ([], ["no.mlir"]),
    "rt-lab": ([], ["no.py", "no.onnx"], ["cse", "no.onnx", "--target=gpu"], ["cse", "no.onnx"]),
    "rt-serve": ([], ["no.plan"], ["no.plan", "--port=x"], ["no.onnx"]),
}


@pytest.mark.parametrize("tool", TOOLS)
def test_every_mistake_is_one_line(
    tool: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for arguments in MISTAKES[tool]:
        assert _said_of(tool, arguments, capsys), arguments
    assert "did you mean --verbose?" in _said_of(tool, [*MISTAKES[tool][-1], "--verbos"], capsys)


def _said_of(tool: str, arguments: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that is said of a mistake; rt-exec says around it that it began and failed, as trtexec does."""
    assert _main(tool, arguments) == 1, arguments
    said = capsys.readouterr().err.splitlines()
    (error,) = [line for line in said if "error: " in line or " [E] " in line]
    assert len(said) == 1 or tool == "rt-exec"
    assert "Traceback" not in "".join(said)
    return error


def test_a_choice_that_was_meant(capsys: pytest.CaptureFixture[str]) -> None:
    assert _main("rt-opt", ["-t", "sas"]) == 1
    assert "; did you mean sass? (rt-opt --help lists the flags)\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("rt-opt", ["a.mlir", "--html=page"], "--html is for passes, and none run: add --to=PHASE or -p PIPELINE"),
        ("rt-opt", ["a.mlir", "--pass-limit=0"], "--pass-limit is for passes, and none run"),
        ("rt-opt", ["a.onnx", "--weights=a.safetensors"], "--weights is for IR: an ONNX model has its own"),
        ("rt-opt", ["a.mlir", "--to=cleanups"], "memory; did you mean cleanup?"),
        ("rt-opt", ["a.mlir", "-p", "cse", "--pass-limit=-1"], "expected a whole number from 0 on, got '-1'"),
        ("rt-translate", ["--print-pipeline", "a.onnx"], "--print-pipeline reads no file: leave a.onnx out"),
        ("rt-translate", ["--import-onnx", "a.onnx", "--to=cleanup"], "--to is for --print-pipeline"),
        ("rt-debug", ["compare", "a.onnx", "--weights=a.safetensors"], "--weights is for IR: give FILE.mlir"),
        ("rt-report", ["a.plan", "-o", "a.html", "--target=cpu"], "--target is for what is built: give FILE.onnx"),
        ("rt-report", ["a.onnx", "-o", "a.html", "--precision=fp61"], "did you mean fp16?"),
        (
            "rt-exec",
            ["--onnx=a.onnx", "--dumpRefit"],
            "--dumpRefit is for engines that keep their network: add --refit",
        ),
        ("rt-exec", ["--loadEngine=a.plan", "--load-pass-plugin=a.py"], "--load-pass-plugin is for building"),
    ],
)
def test_flags_that_would_change_nothing(
    tool: str, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in _said_of(tool, arguments, capsys)


IR = """\
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32>
  func.return %y : tensor<4xf32>
}
"""


@pytest.mark.parametrize(
    ("tool", "arguments", "message"),
    [
        ("rt-opt", ["a.mlir", "-p", "cse", "--html=/proc/page"], "--html=/proc/page: cannot make the folder: "),
        ("rt-exec", ["--onnx=a.mlir", "--target=cpu", "--from=layot"], "--from: there is no phase 'layot'"),
        ("rt-report", ["a.mlir", "--target=cpu", "--from=layot", "-o", "a.html"], "there is no phase 'layot'"),
        ("rt-debug", ["compare", "lowered.mlir"], "this IR starts at memory: expected that of a phase up to fusion"),
    ],
)
def test_mistakes_with_ir(
    tool: str,
    arguments: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.mlir").write_text(IR, encoding="utf-8")
    assert _main("rt-opt", ["a.mlir", "--to=lowering", "-o", "lowered.mlir"]) == 0
    assert message in _said_of(tool, arguments, capsys)


def test_compare_takes_ir_behind_the_phase_fusion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.mlir").write_text(IR, encoding="utf-8")
    assert _main("rt-opt", ["a.mlir", "--to=fusion", "-o", "fused.mlir"]) == 0
    assert _main("rt-debug", ["compare", "fused.mlir"]) == 0
    assert capsys.readouterr().out.endswith("the tensor is within 0.001\n")
