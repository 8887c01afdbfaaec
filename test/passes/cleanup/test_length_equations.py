"""Equations between lengths: which symbol gives way, and to what."""

from __future__ import annotations

import pytest

from mlirt.dialects.symbolic_text import parse
from mlirt.passes.cleanup.length_equations import solution, symbol_of

ORDER = {"a": 0, "b": 1, "c": 2}


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        ("a", "b", ("b", "a")),
        ("c", "b", ("c", "b")),
        ("a", "5", ("a", "5")),
        ("7", "2*b + 1", ("b", "3")),
        ("8", "2*b + 1", None),
        ("2", "a + 3", None),
        ("a*a", "4", None),
        ("b//2", "3", None),
        ("7 % b", "3", None),
        ("c", "a + b", ("c", "a + b")),
        ("a", "b + 1", ("a", "b + 1")),
        ("2*a", "3*b", None),
        ("c", "unbound + 1", None),
        ("other", "5", None),
        ("a", "a", None),
        ("broadcast(a, b)", "a", ("broadcast(a, b)", "a")),
        ("b", "broadcast(a, b)", ("broadcast(a, b)", "b")),
        ("broadcast(a, c)", "b", None),
        ("c", "broadcast(a, b)", ("c", "broadcast(a, b)")),
        ("broadcast(a, b)", "5", None),
    ],
)
def test_solution(left: str, right: str, expected: tuple[str, str] | None) -> None:
    found = solution(parse(left), parse(right), ORDER, frozenset("ab"))
    assert found == (None if expected is None else (expected[0], parse(expected[1])))


def test_a_symbol_is_told_from_an_expression() -> None:
    assert [symbol_of(parse(text)) for text in ("n", "2*n", "n + 1", "3")] == ["n", "", "", ""]
