"""Shape formulas: the JSON form is checked, evaluation equals Python's arithmetic, overflow is an error."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.runtime.expressions import LIMIT, Expression, ExpressionError, evaluate, parse, to_text

SYMBOLS = ("n", "h")
formulas = st.recursive(
    st.integers(-50, 50) | st.sampled_from(SYMBOLS),
    lambda inner: st.tuples(st.sampled_from(["+", "-", "*", "//", "%", "max", "min", "broadcast"]), inner, inner),
    max_leaves=8,
)


MEANING: dict[str, Callable[[int, int], int]] = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "//": lambda x, y: x // y,
    "%": lambda x, y: x % y,
    "max": max,
    "min": min,
    "broadcast": lambda x, y: y if x == 1 else x,
}


def python_value(formula: Expression, n: int, h: int) -> int:
    if isinstance(formula, int):
        return formula
    if isinstance(formula, str):
        return {"n": n, "h": h}[formula]
    operator, a, b = formula
    return MEANING[operator](python_value(a, n, h), python_value(b, n, h))


@given(formulas, st.integers(0, 99), st.integers(0, 99))
def test_evaluation_is_whole_number_arithmetic(formula: Expression, n: int, h: int) -> None:
    parsed = parse(json.loads(json.dumps(formula)), SYMBOLS)
    try:
        expected = python_value(formula, n, h)
    except ZeroDivisionError:
        with pytest.raises(ExpressionError, match="division by zero"):
            evaluate(parsed, {"n": n, "h": h})
        return
    assert evaluate(parsed, {"n": n, "h": h}) == expected


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("m", "unknown symbol 'm'"),
        (1.5, "not float"),
        (True, "not bool"),
        (None, "not NoneType"),
        (["+", 1], "operator, a, b"),
        (["^", 1, 2], "operator of"),
        ([["+"], 1, 2], "operator of"),
        (2**63, "beyond"),
    ],
)
def test_what_is_no_formula_is_refused(value: object, why: str) -> None:
    with pytest.raises(ExpressionError, match=why):
        parse(value, SYMBOLS)


def test_depth_is_bounded() -> None:
    value: object = 1
    for _ in range(10_000):
        value = ["+", value, 1]
    with pytest.raises(ExpressionError, match="deeper"):
        parse(value, SYMBOLS)


def test_overflow_is_an_error() -> None:
    with pytest.raises(ExpressionError, match="beyond"):
        evaluate(("*", LIMIT, 4), {})


def test_text_form() -> None:
    assert to_text(("+", ("*", 2, "n"), 1)) == "(2*n)+1"
    assert to_text(("max", "n", 1)) == "max(n, 1)"
