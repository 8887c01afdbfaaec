"""Numbers of constants are those that NumPy reads, though NumPy is not asked."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from mlirt.dialects.constant_values import rounded, splat_of
from mlirt.dialects.tensor_types import element_type, numpy_dtype
from mlirt.dialects.trt.constant import ConstantOp
from mlirt.dialects.weights import WeightStore

FLOATS = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn")
INTEGERS = ("bool", "int8", "uint8", "int32", "int64")
NUMBERS = (0.0, -0.0, 1.0, 0.1, -2.7, 1e-7, 65504.0, 65520.0, 65519.9, 3.4e38, 3.5e38, 1e300, math.inf, -math.inf)


def _same(a: float, b: float) -> bool:
    return type(a) is type(b) and (a == b or a != a != b != b) and math.copysign(1, a) == math.copysign(1, b)


def _constant(array: Any) -> ConstantOp:
    return ConstantOp.from_array(array, WeightStore(), "c")


@pytest.mark.filterwarnings("ignore:overflow")
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
@pytest.mark.parametrize("number", NUMBERS)
def test_numbers_are_those_of_numpy(name: str, number: float) -> None:
    dtype = numpy_dtype(element_type(name))
    if name in INTEGERS and not abs(number) < 100:
        number = 100.0
    number = abs(number) if name in ("bool", "uint8") else number
    with np.errstate(over="ignore", invalid="ignore"):
        expected = dtype.type(number if name in FLOATS else abs(int(number)))
        assert _same(rounded(number, element_type(name)), dtype.type(number).item())
    for shape in ((), (1,), (2, 3)):
        found = splat_of(_constant(np.full(shape, expected)).output)
        assert found is not None
        assert _same(found, expected.item())


def test_a_number_that_no_element_is() -> None:
    assert rounded(-2.0, element_type("uint8")) == -2.0
    assert rounded(300, element_type("int8")) == 300


def test_what_is_not_one_number() -> None:
    assert splat_of(_constant(np.array([1.0, 2.0], np.float32)).output) is None
    assert splat_of(_constant(np.array([0.0, -0.0], np.float32)).output) is None
    assert splat_of(_constant(np.zeros((0, 3), np.float32)).output) is None
    found = splat_of(_constant(np.full(3, np.nan, np.float16)).output)
    assert found is not None
    assert math.isnan(found)
