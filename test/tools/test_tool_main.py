"""What happens around the work of a tool: exit codes, one line for an error, tracebacks where they are asked for."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

import pytest

from mlirt.errors import InvalidInputError
from mlirt.tools import rt_opt, rt_report, rt_translate
from mlirt.tools.flag_parser import FlagParser
from mlirt.tools.tool_main import tool_main


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = FlagParser("tool", None)
    parser.add_argument("--verbose", action="store_true")
    return parser.parse_args(argv)


def outcome(error: BaseException | None, *argv: str) -> int:
    def work(_: argparse.Namespace) -> int:
        if error is not None:
            raise error
        return 7

    return tool_main("tool", argv, parse, work, lambda _: "a.onnx")


@pytest.mark.parametrize(
    ("error", "code", "text"),
    [
        (None, 7, ""),
        (InvalidInputError("a.onnx: is empty"), 1, "a.onnx: error: is empty\n"),
        (ZeroDivisionError("by zero"), 1, "tool: internal error: ZeroDivisionError: by zero (--verbose shows where)\n"),
        (MemoryError(), 1, "a.onnx: error: there is too little memory for this network\n"),
        (KeyboardInterrupt(), 130, "tool: interrupted\n"),
    ],
)
def test_exit_codes(error: BaseException | None, code: int, text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(error) == code
    assert capsys.readouterr().err == text


def test_wrong_flags_and_tracebacks(capsys: pytest.CaptureFixture[str]) -> None:
    assert outcome(None, "--verbos", "--colour=red") == 1
    expected = "unrecognized arguments: --verbos --colour=red; did you mean --verbose?"
    assert capsys.readouterr().err == f"tool: error: {expected} (tool --help lists the flags)\n"
    assert outcome(InvalidInputError("no"), "--verbose") == 1
    text = capsys.readouterr().err
    assert text.startswith("a.onnx: error: no\nTraceback")
    assert text.endswith("InvalidInputError: no\n")


@pytest.mark.parametrize(
    ("main", "flags"),
    [(rt_opt.main, []), (rt_report.main, ["-o", "page.html"]), (rt_translate.main, ["--import-onnx"])],
)
def test_every_tool_names_a_missing_file_and_shows_where(
    main: Callable[[list[str]], int], flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["missing.onnx", "--verbose", *flags]) == 1
    text = capsys.readouterr().err
    assert "missing.onnx: error: cannot " in text
    assert "Traceback" in text
