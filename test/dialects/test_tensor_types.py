"""Tensor types: how they print, what they say about memory, and which stand for the same value."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import DYNAMIC_INDEX, TensorType, f32
from xdsl.parser import Parser

from mlirt.dialects.context import RtContext
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.symbolic import sym
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_types import (
    byte_width,
    channels,
    channels_last,
    compatible,
    dims,
    element_count,
    element_name,
    element_type,
    is_bool,
    is_float,
    is_row_major,
    is_unknown,
    is_unsigned,
    memory_order,
    numpy_dtype,
    stored_bytes,
    stored_dims,
    strides,
    tensor,
    with_dims,
    with_element,
    with_order,
)

INTEGERS = [f"{sign}int{width}" for sign in ("", "u") for width in (8, 16, 32, 64)]
NAMES = ["bool", "float16", "bfloat16", "float32", "float64", *INTEGERS]


@pytest.mark.parametrize("name", NAMES)
def test_element_types_and_numpy_agree(name: str) -> None:
    element = element_type(name)
    expected = np.dtype(getattr(ml_dtypes, name, name))
    assert element_name(element) == name
    assert numpy_dtype(element) == expected
    assert byte_width(element) == expected.itemsize
    assert is_float(element) == ("float" in name)
    assert is_bool(element) == (name == "bool")
    assert is_unsigned(element) == name.startswith("u")


def test_unknown_element_type() -> None:
    with pytest.raises(KeyError):
        element_type("float8_e5m2")


@pytest.mark.parametrize(
    "text",
    [
        "tensor<2x3xf32>",
        "tensor<f32>",
        'tensor<?x3xf32, #trt.dims<["n", "3"]>>',
        "tensor<?xui8>",
        'tensor<1x2x8x8x16xf32, #trt.dims<["1", "2", "8", "8", "16"], channels = "30", halo = [1, 1]>>',
        'tensor<?x3x8x8xf16, #trt.dims<["n", "3", "8", "8"], order = [0, 2, 3, 1], row = 8>>',
    ],
)
def test_text_reads_back(text: str) -> None:
    ctx = RtContext()
    register_dialects(ctx)
    type_ = Parser(ctx, text).parse_type()
    assert str(type_) == text


def test_changes_of_a_type() -> None:
    type_ = tensor(f32, [sym("n"), 3])
    assert with_dims(type_, [4, sym("n")]) == tensor(f32, [4, sym("n")])
    assert with_element(type_, element_type("int8")) == tensor(element_type("int8"), [sym("n"), 3])


def test_constant_dimensions_need_no_encoding() -> None:
    assert tensor(f32, [2, 3]) == TensorType(f32, [2, 3])
    assert str(tensor(f32, [sym("n"), parse("2*h + 1")])) == 'tensor<?x?xf32, #trt.dims<["n", "2*h + 1"]>>'


def test_unnamed_dimensions_equal_nothing_that_is_known() -> None:
    unnamed = TensorType(f32, [DYNAMIC_INDEX, 3])
    assert is_unknown(dims(unnamed)[0])
    assert is_unknown(dims(unnamed)[0] * 2 + 1)
    assert not is_unknown(sym("n"))
    assert not is_unknown(3)


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (tensor(f32, [2, 3]), tensor(f32, [2, 3]), True),
        (tensor(f32, [2, 3]), tensor(f32, [2, 4]), False),
        (tensor(f32, [2, 3]), tensor(f32, [2]), False),
        (tensor(f32, [2]), tensor(element_type("float16"), [2]), False),
        (tensor(f32, [sym("n")]), tensor(f32, [sym("n")]), True),
        (tensor(f32, [sym("n")]), tensor(f32, [sym("m")]), False),
        (tensor(f32, [parse("n + n")]), tensor(f32, [parse("2*n")]), True),
        (TensorType(f32, [DYNAMIC_INDEX]), tensor(f32, [sym("n")]), True),
        (TensorType(f32, [DYNAMIC_INDEX]), tensor(f32, [5]), True),
    ],
)
def test_compatible(left: TensorType, right: TensorType, expected: bool) -> None:
    assert compatible(left, right) == expected
    assert compatible(right, left) == expected


def test_memory_of_an_ordinary_tensor() -> None:
    type_ = tensor(element_type("float16"), [sym("n"), 3, 4])
    assert strides(type_) == ((12, 4, 1), 0)
    assert element_count(type_) == parse("12*n")
    assert stored_bytes(type_) == parse("24*n")
    assert channels(type_) is None


def test_memory_of_a_blocked_tensor() -> None:
    type_ = tensor(f32, [1, 2, 8, 10, 16], channels=30, halo=(1, 2))
    assert stored_dims(type_) == (1, 2, 10, 14, 16)
    steps, offset = strides(type_)
    assert steps == (2 * 10 * 14 * 16, 10 * 14 * 16, 14 * 16, 16, 1)
    # The first element lies one row and two cells after the border's first one.
    assert offset == 14 * 16 + 2 * 16
    assert stored_bytes(type_) == 4 * 2 * 10 * 14 * 16
    assert channels(type_) == 30


def test_memory_of_channels_last() -> None:
    type_ = with_order(tensor(f32, [sym("n"), 3, sym("h"), 10]), channels_last(4))
    assert memory_order(type_) == (0, 2, 3, 1)
    assert strides(type_) == ((parse("30*h"), 1, 30, 3), 0)
    assert stored_bytes(type_) == parse("120*n*h")
    longer = with_order(type_, channels_last(4), 4)
    assert strides(longer) == ((parse("40*h"), 1, 40, 4), 0)
    assert stored_bytes(longer) == parse("160*n*h")
    assert not is_row_major(longer)
    assert with_order(longer) == tensor(f32, dims(type_))
    assert tensor(f32, [2, 3], order=(0, 1)) == tensor(f32, [2, 3])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('["2", "3"], order = [0, 2]', "C1: order"),
        ('["2", "3"], row = 2', "C2: rows of 2 elements cannot hold 3"),
        ('["2", "3"], channels = "3", order = [1, 0]', "C3: a tensor with blocks"),
        ('["2", "3"], rows = 4', "trt.dims has channels, halo, order, row and fill, not rows"),
        ('["2", "3"], fill = 3', "C4: 3 is no byte that fills a halo"),
    ],
)
def test_what_memory_cannot_look_like(text: str, message: str) -> None:
    context = RtContext()
    register_dialects(context)
    with pytest.raises(Exception, match=message):
        Parser(context, f"tensor<2x3xf32, #trt.dims<{text}>>").parse_type()
