"""Functions of numbers read as layers do to each element what Python does to a number."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import pytest
from xdsl.ir import Block

from mlirt.dialects.context import RtContext
from mlirt.dialects.tensor_types import element_type, tensor
from mlirt.frontend.functions.numbers import UnreadableError
from mlirt.frontend.functions.scalar_reader import read_scalar_function
from mlirt.frontend.importing.network import Network, Value

Function: TypeAlias = "Callable[..., Any]"

SLOPE = 0.25


def swish(x: float, *, beta: float = 1.5) -> float:
    return x / (1 + math.exp(-beta * x))


def soft(x: float) -> float:
    """Softplus, with a name of the module around it."""
    if x > 20:
        return x
    return math.log1p(math.exp(x)) * SLOPE


def chained(x: float, y: float) -> float:
    inside = -1 < x <= 1 and not y == 0.5
    return max(x, y, -0.5) if inside or y != y else min(abs(x), 2)


def horner(x: float) -> float:
    total = 0.0
    for factor in (0.5, -0.25, 2, 1):
        total *= x
        total += factor
    for _ in range(2):
        total = total - x / 3
    return total


def nested(x: float, y: float) -> float:
    if x > 0:
        y = 2 * y
        if y > 1:
            return soft(y) - x
    elif x == 0:
        return 7
    return y**3 - x**2 + 2.0**y


def remainders(x: float, y: float) -> float:
    return x % 0.75 + y // 0.5 + math.floor(x) - math.ceil(y) + round(x * 3) + int(y * 3)


def transcendental(x: float) -> float:
    found = math.tanh(x) + math.erf(x) * math.sin(x) - math.cos(x) * math.pi + math.atan(x)
    return found + math.sqrt(abs(x)) - math.expm1(x) + math.sinh(x) - math.asinh(x) + math.pow(abs(x), 1.5)


IDENTITY: Callable[[Any], Any] = lambda x: x  # noqa: E731
CASES: list[Function] = [swish, soft, chained, horner, nested, remainders, transcendental]
X = np.array([-3, -1.25, -1, -0.3, 0, 1e-3, 0.5, 1, 1.7, 25], np.float32)
Y = np.array([0.5, -2, 0.25, 1, 3, -0.75, 2, 0, -1, 0.1], np.float32)


def computed(function: Function, *arrays: np.ndarray[Any, np.dtype[Any]], **attributes: Any) -> Any:
    """The results of the layers on arrays, folded as constants are."""
    net = Network(RtContext().weights)
    found = read_scalar_function(net, function, [net.constant(array) for array in arrays], attributes)
    results = [getattr(one, "array", one) for one in found]
    return results[0] if len(results) == 1 else results


@pytest.mark.parametrize("function", CASES, ids=lambda one: one.__name__)
def test_layers_compute_what_the_function_does(function: Function) -> None:
    arrays = [X, Y][: function.__code__.co_argcount]
    expected = np.array([function(*map(float, numbers)) for numbers in zip(*arrays, strict=True)])
    np.testing.assert_allclose(computed(function, *arrays), expected, rtol=2e-5, atol=2e-5)


def test_attributes_and_defaults() -> None:
    expected = X / (1 + np.exp(-0.5 * X))
    np.testing.assert_allclose(computed(swish, X, beta=0.5), expected, rtol=1e-5)
    np.testing.assert_allclose(computed(swish, X), X / (1 + np.exp(-1.5 * X)), rtol=1e-5)


def two(x: float) -> tuple[float, bool]:
    return x * 2, x > 0.5


def test_several_results_and_conditions() -> None:
    twice, large = computed(two, X)
    np.testing.assert_array_equal(twice, X * 2)
    np.testing.assert_array_equal(large, X > 0.5)


def mean(x: int, y: int) -> float:
    return (x + y) / 2 + x // 3 - y % 3


def test_whole_numbers() -> None:
    a, b = np.array([-7, -1, 0, 5], np.int32), np.array([2, -4, 5, 9], np.int32)
    expected = [mean(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(computed(mean, a, b), expected)


def forever(x: float) -> float:
    while x > 1:
        x = x / 2
    return x


def looked_up(x: float) -> float:
    table = {1: 2.0}
    return table[1] * x


def endless(x: float) -> float:
    return x if x < 0 else math.gamma(x)


def maybe(x: float) -> float | None:
    if x > 0:
        return x
    pass


def recursive(x: float) -> float:
    return x if x < 1 else recursive(x - 1)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (forever, "'while x > 1: x = x / 2': there is no layer for it"),
        (looked_up, "'{1: 2.0}'"),
        (endless, "math.gamma has no layer"),
        (maybe, "one of its sides ends without a result"),
        (recursive, "recursive: more than 16 functions call each other"),
        (IDENTITY, "it is no def of its own"),
        (eval("lambda x: x"), "there is no source of it"),
    ],
)
def test_what_is_not_read_says_where(function: Function, why: str) -> None:
    net = Network(RtContext().weights)
    type_ = tensor(element_type("float32"), [3])
    block = Block(arg_types=[type_])
    with pytest.raises(UnreadableError) as caught:
        read_scalar_function(net, function, [Value(type_, block.args[0])], {})
    assert why in str(caught.value)
    assert "\n" not in str(caught.value)
