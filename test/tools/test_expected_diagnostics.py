"""The annotations of invalid tests: which line they mean, and what happens where they are wrong."""

from __future__ import annotations

import pytest

from mlirt.dialects.source_parser import SourcePosition
from mlirt.tools.diagnostic import Diagnostic
from mlirt.tools.expected_diagnostics import expectations, mismatches


def _error(line: int | None, message: str) -> Diagnostic:
    return Diagnostic("f.mlir", None if line is None else SourcePosition("f.mlir", line, 1), message)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("// expected-error@+2 {{m}}\n\nop", 3),
        ("op // expected-error {{m}}", 1),
        ("op\n\n// expected-error@-2 {{m}}", 1),
        ("// expected-error@below {{m}}\nop", 2),
        ("// expected-error@below {{m}}\n// expected-error@below {{n}}\nop", 3),
        ("op\n// expected-error @above {{m}}", 1),
        ("// expected-error@unknown {{m}}", None),
    ],
)
def test_line_that_is_meant(text: str, line: int | None) -> None:
    assert next(iter(expectations(text))).line == line


def test_text_is_looked_for_literally() -> None:
    assert not mismatches("op // expected-error {{rank (2) [a.b]}}", [_error(1, "has rank (2) [a.b] here")], "f.mlir")
    assert mismatches("op // expected-error {{a.b}}", [_error(1, "axb")], "f.mlir")


def test_inner_braces_are_expressions() -> None:
    text = "op // expected-error-re {{rank {{[0-9]+}} (at most 8)}}"
    assert not mismatches(text, [_error(1, "rank 12 (at most 8)")], "f.mlir")
    assert mismatches(text, [_error(1, "rank x (at most 8)")], "f.mlir")


def test_unexpected_and_missing_ones_are_problems() -> None:
    text = "op // expected-error {{one}}\nop"
    problems = mismatches(text, [_error(2, "two")], "f.mlir")
    assert problems == [
        "f.mlir:2:1: error: unexpected error: two",
        'f.mlir:1:1: error: expected error "one" was not produced',
    ]


def test_each_annotation_meets_one_diagnostic() -> None:
    text = "op // expected-error {{one}}"
    assert len(mismatches(text, [_error(1, "one"), _error(1, "one")], "f.mlir")) == 1


def test_a_place_must_agree() -> None:
    assert mismatches("op // expected-error {{m}}", [_error(None, "m")], "f.mlir")
    assert not mismatches("// expected-error@unknown {{m}}", [_error(None, "m")], "f.mlir")


def test_malformed_annotation_is_a_problem() -> None:
    assert "cannot read this annotation" in mismatches("// expected-error@+1 text", [], "f.mlir")[0]
