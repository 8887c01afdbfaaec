"""Symbolic dimensions: arithmetic agrees with integers, equal sizes compare equal, text and JSON read back."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mlirt.dialects.symbolic import (
    Dim,
    broadcast_length,
    broadcast_parts,
    ceil_div,
    coefficient_of,
    evaluate,
    floor_div,
    maximum,
    minimum,
    modulo,
    numbers_of,
    product,
    substitute,
    sym,
    symbols,
)
from mlirt.dialects.symbolic_text import parse, to_json

VALUES = {"n": 3, "h": 17, "w": 8}
leaves = st.one_of(st.integers(-9, 9), st.sampled_from([sym("n"), sym("h"), sym("w")]))


def combine(children: st.SearchStrategy[Dim]) -> st.SearchStrategy[Dim]:
    pairs = st.tuples(children, children)
    positive = st.tuples(children, st.integers(1, 6))
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: maximum(*p)),
        pairs.map(lambda p: minimum(*p)),
        positive.map(lambda p: floor_div(*p)),
        positive.map(lambda p: modulo(*p)),
        positive.map(lambda p: ceil_div(*p)),
    )


dims = st.recursive(leaves, combine, max_leaves=6)


@given(dims, dims, st.integers(1, 6))
def test_arithmetic_agrees_with_integers(left: Dim, right: Dim, divisor: int) -> None:
    a, b = evaluate(left, VALUES), evaluate(right, VALUES)
    assert evaluate(left + right, VALUES) == a + b
    assert evaluate(left - right, VALUES) == a - b
    assert evaluate(left * right, VALUES) == a * b
    assert evaluate(floor_div(left, divisor), VALUES) == a // divisor
    assert evaluate(modulo(left, divisor), VALUES) == a % divisor
    assert evaluate(ceil_div(left, divisor), VALUES) == -(-a // divisor)
    assert evaluate(maximum(left, right), VALUES) == max(a, b)
    assert evaluate(minimum(left, right), VALUES) == min(a, b)


@given(dims, dims)
def test_division_by_a_symbolic_length(left: Dim, right: Dim) -> None:
    b = evaluate(right, VALUES)
    assume(b > 0)
    assert evaluate(floor_div(left, right), VALUES) == evaluate(left, VALUES) // b
    assert evaluate(modulo(left, right), VALUES) == evaluate(left, VALUES) % b


@given(dims)
def test_text_reads_back(dim: Dim) -> None:
    assert parse(str(dim)) == dim


@given(dims, dims)
def test_sums_and_products_are_canonical(left: Dim, right: Dim) -> None:
    assert left + right == right + left
    assert left * right == right * left
    assert (left + right) - right == left
    assert left - left == 0
    assert hash(left + right) == hash(right + left)


@given(dims)
def test_json_evaluates_to_the_same(dim: Dim) -> None:
    assert _evaluate_json(to_json(dim)) == evaluate(dim, VALUES)


def _evaluate_json(form: Any) -> int:
    if isinstance(form, int):
        return form
    if isinstance(form, str):
        return VALUES[form]
    function, left, right = form
    a, b = _evaluate_json(left), _evaluate_json(right)
    return {
        "+": lambda: a + b,
        "-": lambda: a - b,
        "*": lambda: a * b,
        "//": lambda: a // b,
        "%": lambda: a % b,
        "max": lambda: max(a, b),
        "min": lambda: min(a, b),
    }[function]()


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("n", "n"),
        ("2*n + n", "3*n"),
        ("(2*n) // 2", "n"),
        ("(2*n + 3) // 2", "n + 1"),
        ("(n*h) // h", "n"),
        ("(512*n*h - 3072*n) // (n*h - 6*n)", "512"),
        ("(n*n - h*h) // (n + h)", "-h + n"),
        ("(n*h + n) // (h + 2)", "((h*n + n) // (h + 2))"),
        ("(n*h + h - 1) // h", "n"),
        ("(n*h + h) // h", "n + 1"),
        ("(n*(h - m) + h - m - 1) // (h - m)", "((h*n - m*n + h - m - 1) // (h - m))"),
        ("(n - 1) // 2 + 1", "((n + 1) // 2)"),
        ("((n + 1) // 2 + 1) // 2", "((n + 3) // 4)"),
        ("3*n // 2", "n + (n // 2)"),
        ("(2 - n) // 3", "((2*n + 2) // 3) - n"),
        ("4*n % 2", "0"),
        ("n % 1", "0"),
        ("max(n, n)", "n"),
        ("max(max(n // 2, 1) // 2, 1)", "max((n // 4), 1)"),
        ("max(2, max(n, 3) + 1)", "max(n + 1, 4)"),
        ("(max(n, 1) + 1) // 2", "max(((n + 1) // 2), 1)"),
        ("-(n - h)", "h - n"),
        ("`a b` + 1", "`a b` + 1"),
        ("n//n", "1"),
        ("7", "7"),
        ("broadcast(n, broadcast(m, h))", "broadcast(broadcast(h, m), n)"),
        ("broadcast(n, 1)", "n"),
        ("broadcast(n, 5)", "5"),
        ("2*broadcast(n, n) + 1", "2*n + 1"),
    ],
)
def test_canonical_forms(text: str, canonical: str) -> None:
    assert str(parse(text)) == canonical
    assert parse(canonical) == parse(text)


@given(st.lists(st.sampled_from(["n", "h", "w"]), min_size=1), st.integers(0, 4), st.sets(st.sampled_from("nhw")))
def test_lengths_that_broadcast(names: list[str], length: int, ones: set[str]) -> None:
    """As NumPy has it, 0 included, in whatever order they are combined and symbols become numbers."""
    values = {name: 1 if name in ones else length for name in "nhw"}
    (expected,) = np.broadcast_shapes(*[(values[name],) for name in names])
    found: Dim = 1
    for name in names:
        found = broadcast_length(found, sym(name))
    assert found == broadcast_length(sym(names[-1]), found)
    assert set(broadcast_parts(found)) == {sym(name) for name in names}
    assert evaluate(found, values) == expected
    assert evaluate(substitute(found, {names[0]: values[names[0]]}), values) == expected
    assert parse(str(found)) == found


@pytest.mark.parametrize("text", ["", "n +", "(n", "n)", "2 n", "*n", "max(n)", "n & 1", "1.5"])
def test_text_that_is_no_dimension(text: str) -> None:
    with pytest.raises(ValueError, match="is not a dimension"):
        parse(text)


def test_dimensions_without_symbols_are_numbers() -> None:
    assert numbers_of([3, 0, floor_div(sym("n"), 2) * 0 + 7]) == [3, 0, 7]
    with pytest.raises(KeyError, match="n"):
        numbers_of([3, sym("n") + 1])


def test_missing_symbol_is_named() -> None:
    with pytest.raises(KeyError, match="h"):
        evaluate(sym("n") + sym("h"), {"n": 1})


@given(dims, dims)
def test_substitution_comes_before_or_after_evaluation(dim: Dim, replacement: Dim) -> None:
    after = evaluate(substitute(dim, {"n": replacement}), VALUES)
    assert after == evaluate(dim, VALUES | {"n": evaluate(replacement, VALUES)})


def test_symbols_are_found_inside_calls() -> None:
    assert symbols(parse("max(n, h // 2) * w + 1")) == {"n", "h", "w"}
    assert symbols(5) == frozenset()


def test_factors_of_a_linear_expression() -> None:
    assert coefficient_of(parse("2*n*h + h + 3"), "n") == parse("2*h")
    assert coefficient_of(parse("h"), "n") == 0
    for text in ("n*n", "n // 2", "max(n, 3)"):
        with pytest.raises(ValueError, match="is not linear in n"):
            coefficient_of(parse(text), "n")


def test_product_of_dimensions() -> None:
    assert product([2, sym("n"), 3]) == parse("6*n")
    assert product([]) == 1
