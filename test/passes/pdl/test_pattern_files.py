"""What is wrong with a file of patterns is said in one line, with its place; a rule without end is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mlirt.errors import CompileError, InvalidInputError
from mlirt.passes.pdl.pattern_file import read_patterns
from mlirt.passes.pipeline import run_passes
from mlirt.passes.remarks import Remarks, recording
from mlirt.tools.input_files import InputFile, load_text, new_context

GOOD = (Path(__file__).parent / "two_relus.pdl").read_text(encoding="utf-8")
NETWORK = """
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = trt.activation relu %x : (tensor<4xf32>) -> tensor<4xf32> loc("first")
  %y = trt.activation relu %a : (tensor<4xf32>) -> tensor<4xf32> loc("second")
  func.return %y : tensor<4xf32>
}
"""


def written(folder: Path, text: str) -> str:
    path = folder / "rules.pdl"
    path.write_text(text, encoding="utf-8")
    return str(path)


TYPED = "} -> (%type : !pdl.type)\n  %a"
CHEAP = '  pdl.apply_native_constraint "cheap"(%x : !pdl.value)\n'
MISTAKES = [
    (
        '"trt.activation" (%a',
        '"trt.activaton" (%a',
        "7:3: there is no op 'trt.activaton'; did you mean trt.activation?",
    ),
    (
        f'"kind" = %kind{TYPED}',
        f'"knd" = %kind{TYPED}',
        "5:3: trt.activation has no property 'knd'; it has alpha, beta",
    ),
    ("result 0 of", "result 3 of", "6:3: trt.activation has no result 3"),
    ("pdl.replace %second", "pdl.replace %first", "10:5: only the root can be replaced"),
    ("    pdl.replace %second with %one\n", "", "8:3: expected pdl.replace of the root in the rewrite"),
    ("pdl.operand\n", "pdl.operandx\n", "3:8: there is no op 'pdl.operandx'"),
    ("activation_kind relu", "activation_kind rely", "2:48: Expected `relu`"),
    ("  %type =", f"{CHEAP}  %type =", "4:3: there is no native constraint 'cheap' like this; there are 'one_use' and"),
    ("pdl.rewrite %second", "pdl.rewrite %first", "7:3: the root does not depend on this operation"),
    (": benefit(2) {", ": benefit(2) {\n  %z = pdl.operand", "2:3: 'pdl.operand' op expected a bindable user"),
]


@pytest.mark.parametrize(("old", "new", "said"), MISTAKES, ids=[said for _, _, said in MISTAKES])
def test_mistakes(tmp_path: Path, old: str, new: str, said: str) -> None:
    assert old in GOOD
    path = written(tmp_path, GOOD.replace(old, new, 1))
    with pytest.raises(InvalidInputError) as error:
        read_patterns(path, new_context())
    assert str(error.value).startswith(f"pass apply-pdl: {path}:{said}")


def test_ranges_are_refused(tmp_path: Path) -> None:
    ranges = GOOD.replace("pdl.operand\n", "pdl.operands\n").replace("%x : !pdl.value", "%x : !pdl.range<value>")
    with pytest.raises(InvalidInputError, match=r":3:3: expected pdl\.operand or .*ranges are not"):
        read_patterns(written(tmp_path, ranges), new_context())


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    for path, said in (
        (str(tmp_path / "none.pdl"), "there is no such file"),
        (str(tmp_path), "Is a directory"),
        (written(tmp_path, "// nothing\n"), "expected at least one pdl.pattern, but there is none"),
    ):
        with pytest.raises(InvalidInputError, match=said):
            read_patterns(path, new_context())
    (tmp_path / "binary.pdl").write_bytes(b"\xff\xfe")
    with pytest.raises(InvalidInputError, match="expected PDL text, but byte 0 is no text"):
        read_patterns(str(tmp_path / "binary.pdl"), new_context())


def run(path: str, network: str = NETWORK) -> tuple[str, list[str]]:
    ctx = new_context()
    module, _ = load_text(ctx, network, InputFile("a.mlir"))
    found = Remarks()
    with recording(found):
        run_passes(module, ctx, f'apply-pdl{{file="{path}"}}')
    return str(module), [str(one) for one in found.remarks]


def test_remarks_name_the_layers(tmp_path: Path) -> None:
    _, said = run(written(tmp_path, GOOD))
    assert said == ["apply-pdl: applied: first + second (trt.activation)"]


def test_a_constraint_declines(tmp_path: Path) -> None:
    alone = GOOD.replace("  %a = pdl", '  pdl.apply_native_constraint "one_use"(%first : !pdl.operation)\n  %a = pdl')
    network = NETWORK.replace("return %y : tensor<4xf32>", "return %y, %a : tensor<4xf32>, tensor<4xf32>").replace(
        "-> tensor<4xf32> {", "-> (tensor<4xf32>, tensor<4xf32>) {"
    )
    _, said = run(written(tmp_path, alone), network)
    assert said == ["apply-pdl: declined: second (trt.activation): first has other readers"]


def test_the_largest_benefit_comes_first(tmp_path: Path) -> None:
    tanh = (
        GOOD.replace("@OneRelu", "@Tanh")
        .replace("    pdl.replace", "    %k = pdl.attribute = #trt<activation_kind tanh>\n    pdl.replace")
        .replace('(%x : !pdl.value) {"kind" = %kind}\n', '(%x : !pdl.value) {"kind" = %k}\n')
    )
    lines = tanh.splitlines()
    lines.insert(8, lines.pop(9))  # the attribute in front of the op that has it
    tanh = "\n".join(lines) + "\n"
    for benefit, left in ((1, "relu"), (3, "tanh")):
        text, _ = run(written(tmp_path, GOOD + tanh.replace("benefit(2)", f"benefit({benefit})")))
        assert f"trt.activation {left}" in text


def test_a_pattern_without_end_is_named(tmp_path: Path) -> None:
    endless = GOOD.replace(
        "pdl.replace %second with %one",
        """%b = pdl.result 0 of %one
    %two = pdl.operation "trt.activation" (%b : !pdl.value) {"kind" = %kind}
    pdl.replace %second with %two""",
    )
    path = written(tmp_path, endless)
    with pytest.raises(
        CompileError, match=rf"rule {path}:1:1: pattern OneRelu goes on without end .* at first \+ second\)"
    ):
        run(path)


def test_what_a_rewrite_makes_is_checked(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        GOOD.replace(
            '%one = pdl.operation "trt.activation" (%x : !pdl.value) {"kind" = %kind}',
            '%one = pdl.operation "trt.matrix_multiply" (%x : !pdl.value)',
        ),
    )
    with pytest.raises(InvalidInputError, match=r"pattern OneRelu: what it makes of second is wrong: "):
        run(path)


SAME_KIND = """
pdl.pattern @SameKind : benefit(1) {
  %kind = pdl.attribute
  %type = pdl.type
  %x = pdl.operand : %type
  %first = pdl.operation "trt.unary" (%x : !pdl.value) {"kind" = %kind} -> (%type : !pdl.type)
  %a = pdl.result 0 of %first
  %second = pdl.operation "trt.unary" (%a : !pdl.value) {"kind" = %kind} -> (%type : !pdl.type)
  pdl.rewrite %second {
    %new = pdl.operation "trt.unary" (%x : !pdl.value) {"kind" = %kind} -> (%type : !pdl.type)
    pdl.replace %second with %new
  }
}
"""


@pytest.mark.parametrize(("kinds", "left"), [(("abs", "abs"), ["abs"]), (("abs", "neg"), ["abs", "neg"])])
def test_what_a_pattern_leaves_open_is_the_same_in_all_places(
    tmp_path: Path, kinds: tuple[str, str], left: list[str]
) -> None:
    network = NETWORK
    for kind in kinds:
        network = network.replace("trt.activation relu", f"trt.unary {kind}", 1)
    text, _ = run(written(tmp_path, SAME_KIND), network)
    assert re.findall(r"trt.unary (\w+)", text) == left


def test_any_op_and_several_results(tmp_path: Path) -> None:
    """An operation without a name is any op; `pdl.replace` with values takes one for each result."""
    pattern = """
    pdl.pattern @BehindRelu : benefit(1) {
      %relu = pdl.attribute = #trt<activation_kind relu>
      %x = pdl.operand
      %before = pdl.operation (%x : !pdl.value)
      %a = pdl.result 0 of %before
      %root = pdl.operation "trt.activation" (%a : !pdl.value) {"kind" = %relu}
      pdl.rewrite %root {
        pdl.erase %before
        pdl.replace %root with (%a : !pdl.value)
      }
    }"""
    network = NETWORK.replace("trt.activation relu %x", "trt.unary exp %x")
    text, said = run(written(tmp_path, pattern), network)
    assert "trt.activation" not in text
    assert "trt.unary exp" in text
    assert said == ["apply-pdl: applied: second (trt.activation): it is left out"]
