"""All formulas of a plan at once: the values that `evaluate` gives one by one, each distinct operation once."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.runtime import formula_table
from mlirt.runtime.expressions import OPERATORS, Expression, ExpressionError, evaluate
from mlirt.runtime.formula_table import FormulaTable
from mlirt.runtime.plan_file import make_plan
from mlirt.runtime.shape_binding import ShapeBinder

formulas = st.recursive(
    st.integers(-50, 50) | st.sampled_from(("n", "h", 2**60)),
    lambda inner: st.tuples(st.sampled_from(sorted(OPERATORS)), inner, inner),
    max_leaves=8,
)


def value_of(compute: Callable[[], int]) -> int | str:
    try:
        return compute()
    except ExpressionError as error:
        return str(error)


@given(st.lists(formulas, max_size=8), st.integers(0, 99), st.integers(0, 99))
def test_the_same_values_as_one_by_one(found: list[Expression], n: int, h: int) -> None:
    table, values = FormulaTable(), {"n": n, "h": h}
    numbers = [table.add(one) for one in found]
    evaluated = table.evaluated(values)
    expected = [value_of(lambda one=one: evaluate(one, values)) for one in found]
    assert [value_of(lambda one=one: evaluated.of(one)) for one in found] == expected
    assert evaluated.is_whole or any(isinstance(one, str) for one in expected)
    array = evaluated.array()
    assert [int(array[number]) for number in numbers] == [one if isinstance(one, int) else 0 for one in expected]


@pytest.mark.parametrize("launches", [3, 300])
def test_each_distinct_operation_is_computed_once_a_binding(
    tiny: Callable[[], Any], launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many launches there are, whose formulas have n * 4, n * 4 * 4 and n * 4 + 1 in them."""
    computed: list[str] = []

    def counted(name: str) -> Callable[[int, int], int]:
        def operator(left: int, right: int) -> int:
            computed.append(name)
            return OPERATORS[name](left, right)

        return operator

    monkeypatch.setattr(formula_table, "OPERATORS", {name: counted(name) for name in OPERATORS})
    parts = tiny()
    first = parts.manifest["launches"][0]
    first["args"][4] = {"float": 1.0}
    parts.manifest["kernels"][1]["args"] = ["ptr", "ptr", "i64", "i64"]
    parts.manifest["launches"][1]["args"].append({"int": ["+", ["*", "n", 4], 1]})
    parts.manifest["launches"][1:1] = [first] * (launches - 3)
    parts.manifest["buffers"][1]["last"] = launches
    parts.manifest["buffers"][4].update(first=launches - 1, last=launches)
    binder = ShapeBinder(make_plan(parts.manifest, parts.sections, parts.weights).manifest)
    assert computed == []
    for n in (1, 7):
        computed.clear()
        assert len(binder.bind([(n, 4)]).arguments.starts) == launches + 1
        assert sorted(computed) == ["*", "*", "+"]
