"""Shape arithmetic: symbolic results, with values put in, are what NumPy computes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import f32, i64

from mlirt.dialects.symbolic import evaluate
from mlirt.dialects.symbolic_text import parse
from mlirt.frontend.importing.dim_numbers import Number, Ratio
from mlirt.frontend.importing.number_arrays import ABSENT, Array, Numbers, as_numbers, constant_of, numbers_from
from mlirt.frontend.onnx.shape_values import propagate

TERMS = ["n", "2*n + 1", "h", "h + n", "n*h", "3", "0"]


def symbolic(*texts: str) -> Numbers:
    return numbers_from([parse(text) for text in texts])


def stored(*values: int) -> Numbers:
    found = as_numbers(np.array(values, np.int64))
    assert found is not None
    return found


def scalar(value: int) -> Numbers:
    found = as_numbers(np.array(value, np.int64))
    assert found is not None
    return found


def run(op_type: str, *inputs: Numbers | None, floats: bool = False, **attributes: Any) -> Sequence[Numbers] | None:
    return propagate(op_type, inputs, attributes, f32 if floats else i64)


def texts(op_type: str, *inputs: Numbers | None, floats: bool = False, **attributes: Any) -> list[str]:
    results = run(op_type, *inputs, floats=floats, **attributes)
    assert results is not None
    return [str(element) for element in results[0].reshape(-1)]


def value_of(number: Number, env: dict[str, int]) -> float:
    if isinstance(number, Ratio):
        return evaluate(number.numerator, env) / number.denominator
    assert number is not None
    return evaluate(number, env)


SHAPE = symbolic("n", "3", "2*h", "w")

MOVES: list[tuple[str, list[Numbers | None], dict[str, Any], list[str]]] = [
    ("Gather", [SHAPE, stored(2, 0)], {}, ["2*h", "n"]),
    ("Gather", [SHAPE, stored(-1)], {"axis": 0}, ["w"]),
    ("Concat", [SHAPE, stored(7)], {"axis": 0}, ["n", "3", "2*h", "w", "7"]),
    ("Slice", [SHAPE, stored(2), stored(1 << 62)], {}, ["2*h", "w"]),
    ("Slice", [SHAPE], {"starts": [0], "ends": [2]}, ["n", "3"]),
    ("Slice", [SHAPE, stored(-1), stored(-(1 << 62)), ABSENT, stored(-1)], {}, ["w", "2*h", "3", "n"]),
    ("Unsqueeze", [SHAPE, stored(0)], {}, ["n", "3", "2*h", "w"]),
    ("Squeeze", [symbolic("n")], {"axes": [0]}, ["n"]),
    ("Squeeze", [symbolic("n")], {}, ["n"]),
    ("Reshape", [SHAPE, stored(2, -1)], {}, ["n", "3", "2*h", "w"]),
    ("Expand", [symbolic("n"), stored(3)], {}, ["n", "n", "n"]),
    ("ReduceProd", [SHAPE], {}, ["6*h*n*w"]),
    ("ReduceSum", [SHAPE, stored(0)], {"keepdims": 0}, ["2*h + n + w + 3"]),
    ("Where", [stored(1, 0), symbolic("n", "n"), symbolic("h", "h")], {}, ["n", "h"]),
    ("Equal", [SHAPE, stored(-1)], {}, ["0", "0", "0", "0"]),
    ("Equal", [symbolic("n", "n + 1"), symbolic("n", "n")], {}, ["1", "0"]),
    ("Less", [symbolic("n"), symbolic("n + 2")], {}, ["1"]),
    ("Max", [symbolic("n + 2"), symbolic("n")], {}, ["n + 2"]),
    ("Min", [symbolic("n"), stored(4)], {}, ["min(n, 4)"]),
    ("Div", [symbolic("2*h"), stored(2)], {}, ["h"]),
    ("Div", [symbolic("n*h"), symbolic("n")], {}, ["h"]),
    ("Mod", [symbolic("2*h + 1"), stored(2)], {}, ["1"]),
    ("ConstantOfShape", [stored(2)], {"value": np.array([5])}, ["5", "5"]),
    ("Range", [scalar(0), scalar(6), scalar(2)], {}, ["0", "2", "4"]),
    ("Size", [SHAPE], {}, ["4"]),
    ("Shape", [SHAPE], {}, ["4"]),
    ("Cast", [SHAPE], {"to": 1}, ["n", "3", "2*h", "w"]),
    ("Transpose", [SHAPE], {}, ["n", "3", "2*h", "w"]),
]


@pytest.mark.parametrize(("op_type", "inputs", "attributes", "expected"), MOVES)
def test_rules(op_type: str, inputs: list[Numbers | None], attributes: dict[str, Any], expected: list[str]) -> None:
    assert texts(op_type, *inputs, **attributes) == expected


def test_a_split_has_several_results() -> None:
    results = run("Split", SHAPE, stored(1, 3))
    assert results is not None
    assert [list(map(str, result)) for result in results] == [["n"], ["3", "2*h", "w"]]


def test_the_scale_of_an_interpolation_is_exact() -> None:
    factor = as_numbers(np.array([1.5], np.float32))
    results = run("Mul", symbolic("n"), factor, floats=True)
    assert results is not None
    scaled = results[0]
    assert texts("Floor", scaled, floats=True) == ["n + (n // 2)"]
    assert texts("Cast", scaled, floats=True, to=7) == ["n + (n // 2)"]
    assert texts("Ceil", scaled, floats=True) == ["((n + 1) // 2) + n"]


def test_ratios_of_lengths_become_constants() -> None:
    results = run("Div", symbolic("2*h", "w"), symbolic("h", "2*w"), floats=True)
    assert results is not None
    constant = constant_of(results[0], np.dtype(np.float32))
    assert constant is not None
    assert constant.tolist() == [2.0, 0.5]


@pytest.mark.parametrize("op_type", ["Relu", "MatMul", "Unknown"])
def test_other_ops_are_left_alone(op_type: str) -> None:
    assert run(op_type, SHAPE) is None


def test_what_is_not_known_stays_so() -> None:
    assert run("Gather", SHAPE, None) is None
    unsure = numbers_from([None, 3])
    assert texts("Add", unsure, stored(1, 1)) == ["None", "4"]
    assert texts("Equal", symbolic("n"), stored(4)) == ["None"]
    assert texts("Mul", unsure, stored(0, 2)) == ["0", "6"]


def test_nonsense_is_left_to_the_handler() -> None:
    assert run("Reshape", SHAPE, stored(3, 3)) is None
    assert run("Gather", SHAPE, stored(9)) is None
    assert run("Range", scalar(0), scalar(3), scalar(0)) is None
    assert run("Expand", symbolic("n"), stored(1 << 40)) is None


ELEMENTWISE: dict[str, Callable[[Array, Array], Array]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Max": np.maximum,
    "Min": np.minimum,
    "Equal": np.equal,
    "Less": np.less,
    "LessOrEqual": np.less_equal,
    "Greater": np.greater,
    "GreaterOrEqual": np.greater_equal,
}


@given(
    st.sampled_from(sorted(ELEMENTWISE)),
    st.lists(st.sampled_from(TERMS), min_size=1, max_size=3),
    st.sampled_from(TERMS),
    st.integers(0, 9),
    st.integers(0, 9),
)
def test_elementwise_results_hold_for_every_size(op_type: str, left: list[str], right: str, n: int, h: int) -> None:
    env = {"n": n, "h": h}
    results = run(op_type, symbolic(*left), symbolic(right))
    assert results is not None
    wanted = ELEMENTWISE[op_type](np.array([evaluate(parse(text), env) for text in left]), evaluate(parse(right), env))  # pyright: ignore[reportArgumentType]
    for number, want in zip(results[0], wanted, strict=True):
        assert number is None or value_of(number, env) == want


@given(st.sampled_from(TERMS), st.integers(-6, 6), st.booleans(), st.integers(0, 9), st.integers(0, 9))
def test_division_holds_for_every_size(left: str, right: int, floats: bool, n: int, h: int) -> None:
    env = {"n": n, "h": h}
    results = run("Div", symbolic(left), stored(right), floats=floats)
    assert results is not None
    number = results[0][0]
    if right == 0:
        assert number is None
    elif number is not None:
        exact = evaluate(parse(left), env) / right
        assert value_of(number, env) == pytest.approx(exact if floats else int(exact))
