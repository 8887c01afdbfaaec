"""Changes of element type against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto
from onnx_models import check_node, imported_text, numbers, one_node

from mlirt.errors import UnsupportedError


@pytest.mark.parametrize("source", ["float32", "float64", "float16", "int32", "int64", "uint8", "bool"])
@pytest.mark.parametrize("target", ["FLOAT", "DOUBLE", "FLOAT16", "INT32", "INT64", "BOOL"])
def test_cast(source: str, target: str) -> None:
    x = np.array([0, 1, 2, 3.7, 100]).astype(source)
    check_node("Cast", [x], opset=13, to=TensorProto.DataType.Value(target))


def test_types_of_other_widths_are_refused() -> None:
    model, _ = one_node("Cast", [numbers(3)], opset=24, to=TensorProto.FLOAT8E8M0)
    with pytest.raises(UnsupportedError, match=r"Cast \(node 'node'\) has element type float8e8m0"):
        imported_text(model)


def test_cast_like() -> None:
    check_node("CastLike", [numbers(3), np.array([1])], opset=15)


def test_a_cast_to_the_same_type_is_nothing() -> None:
    model, _ = one_node("Cast", [numbers(3)], to=TensorProto.FLOAT)
    assert "func.return %in0" in imported_text(model)
