"""The largest and smallest elements (tensorrt-features.md#1.40a, 1.40b): the reference against ONNX Runtime."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from trt_layers import layer, onnx_node, random, run
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.trt.topk import TopkKind, TopkOp


@pytest.mark.parametrize("kind", list(TopkKind))
@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("k", [1, 3, 4])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64"])
def test_against_onnxruntime_1_40a(kind: TopkKind, axis: int, k: int, dtype: str) -> None:
    x = random((4, 5), dtype=dtype)
    expected = onnx_node("TopK", [x, np.array([k])], 2, axis=axis, largest=int(kind is TopkKind.MAX))
    found = run(TopkOp, [x], {0: "n,c"}, 2, kind=kind, k=k, axis=axis)
    assert_array_equal(found[0], expected[0])
    assert_array_equal(found[1], expected[1])


@pytest.mark.parametrize("kind", list(TopkKind))
def test_of_equal_elements_the_first_comes_first_1_40a(kind: TopkKind) -> None:
    _, indices = run(TopkOp, [np.array([2, 1, 2, 1, 2, 1], np.float16)], None, 2, kind=kind, k=4, axis=0)
    assert indices.tolist() == ([0, 2, 4, 1] if kind is TopkKind.MAX else [1, 3, 5, 0])


def test_k_is_at_most_the_length_1_40b() -> None:
    with pytest.raises(VerifyException, match=r"C3: k = 4 .* is not consistent with dimensions"):
        layer(TopkOp, [random((3,))], None, 2, kind=TopkKind.MAX, k=4, axis=0)


def test_none_of_nothing() -> None:
    values, indices = run(TopkOp, [random((3,))], None, 2, kind=TopkKind.MAX, k=0, axis=0)
    assert values.shape == indices.shape == (0,)
