"""Conversions (tensorrt-features.md#1.14): the reference against ONNX Runtime's Cast."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from onnx import helper
from trt_layers import onnx_node, random
from xdsl.utils.test_value import create_ssa_value

from mlirt.dialects.tensor_types import element_type, tensor
from mlirt.dialects.trt.identity import IdentityOp

TYPES = ["float16", "float32", "float64", "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"]


@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_conversions_1_14(source: str, target: str) -> None:
    x = 3 * random((40,), dtype=source) if source != "bool" else random((40,), dtype=source)
    if np.dtype(target).kind == "u":
        x = np.abs(x)
    (expected,) = onnx_node("Cast", [x], to=helper.np_dtype_to_tensor_dtype(np.dtype(target)))
    op = IdentityOp.cast(create_ssa_value(tensor(element_type(source), [40])), element_type(target))
    op.verify()
    (y,) = op.reference(x)
    assert y.dtype == np.dtype(target)
    assert_array_equal(y, expected)


def test_truncates_and_tests_for_zero_1_14() -> None:
    x = np.array([-1.9, -0.5, 0.0, 0.5, 1.9], np.float32)
    value = create_ssa_value(tensor(element_type("float32"), [5]))
    assert IdentityOp.cast(value, element_type("int32")).reference(x)[0].tolist() == [-1, 0, 0, 0, 1]
    assert IdentityOp.cast(value, element_type("bool")).reference(x)[0].tolist() == [True, True, False, True, True]


def test_bfloat16_keeps_what_it_can() -> None:
    x = np.array([1.0, 1.0 + 2**-7, 3e38], np.float32)
    value = create_ssa_value(tensor(element_type("float32"), [3]))
    (y,) = IdentityOp.cast(value, element_type("bfloat16")).reference(x)
    assert y.dtype.name == "bfloat16"
    assert_array_equal(y.astype(np.float32)[:2], x[:2])
