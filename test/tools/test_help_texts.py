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
