"""Symbols learned from actual shapes."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, f32

from mlirt.dialects.symbol_values import bind
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_types import tensor
from mlirt.errors import InvalidInputError


def bound(text: str, shape: list[int], **values: int) -> dict[str, int]:
    bind(tensor(f32, [parse(dim) for dim in text.split(",")]), shape, values, "input 'x'")
    return values


@pytest.mark.parametrize(
    ("text", "shape", "expected"),
    [
        ("n,3", [2, 3], {"n": 2}),
        ("2*w + 1", [7], {"w": 3}),
        ("n,n + 1", [4, 5], {"n": 4}),
        ("n,n*m", [4, 12], {"n": 4, "m": 3}),
        ("h // 2", [4], {}),
    ],
)
def test_linear_expressions_are_solved(text: str, shape: list[int], expected: dict[str, int]) -> None:
    assert bound(text, shape) == expected


@pytest.mark.parametrize(
    ("text", "shape", "message"),
    [
        ("3", [4], r"input 'x': expected length 3 on axis 0 of \[3\], got shape \[4\]"),
        ("n,n", [2, 3], r"expected length n = 2 on axis 1 of \[n, n\], got shape \[2, 3\]"),
        ("n", [2, 3], r"expected rank 1 \[n\], got shape \[2, 3\]"),
    ],
)
def test_contradictions(text: str, shape: list[int], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        bound(text, shape)


def test_known_symbols_are_held_against_the_shape() -> None:
    with pytest.raises(InvalidInputError, match="expected length n = 5"):
        bound("n", [4], n=5)


def test_unnamed_dimensions_take_any_length() -> None:
    values: dict[str, int] = {}
    bind(TensorType(f32, [DYNAMIC_INDEX, DYNAMIC_INDEX]), [2, 3], values, "x")
    assert values == {}
