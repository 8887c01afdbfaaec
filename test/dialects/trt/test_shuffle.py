"""Shuffles (tensorrt-features.md#1.37a-1.37c): the reference against NumPy's reshape and transpose."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from trt_layers import layer, random, run
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.symbolic import sym
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.tensor_types import dims, is_unknown
from mlirt.dialects.trt.shuffle import ShuffleOp


@settings(max_examples=60, deadline=None)
@given(
    shape=st.lists(st.integers(0, 3), min_size=1, max_size=4),
    data=st.data(),
)
def test_transpose_reshape_transpose_1_37a(shape: list[int], data: st.DataObject) -> None:
    first = data.draw(st.permutations(range(len(shape))))
    transposed = [shape[axis] for axis in first]
    new = data.draw(st.sampled_from([[*transposed, 1], transposed, [int(np.prod(shape))], [1, int(np.prod(shape))]]))
    second = data.draw(st.permutations(range(len(new))))
    x = random(shape)
    (y,) = run(
        ShuffleOp,
        [x],
        first_transpose=first,
        reshape_dims=DimsAttr.of(new),
        second_transpose=second,
        zero_is_placeholder=False,
    )
    assert_array_equal(y, x.transpose(first).reshape(new).transpose(second))


@pytest.mark.parametrize(
    ("written", "shape"),
    [("0,-1", (2, 12)), ("-1,4", (6, 4)), ("0,0,2,2", (2, 3, 2, 2)), ("0,0,0", (2, 3, 4)), ("-1", (24,))],
)
def test_placeholders_1_37a(written: str, shape: tuple[int, ...]) -> None:
    x = random((2, 3, 4))
    (y,) = run(ShuffleOp, [x], reshape_dims=DimsAttr.of([int(size) for size in written.split(",")]))
    assert_array_equal(y, x.reshape(shape))
    (z,) = run(ShuffleOp, [x, np.array(written.split(","), np.int64)])
    assert_array_equal(z, y)


def test_symbolic_lengths() -> None:
    x = random((2, 3, 4))
    op = layer(ShuffleOp, [x], {0: "n,3,w"}, reshape_dims=DimsAttr.of([0, -1]))
    assert dims(op.results[0].type) == (sym("n"), parse("3*w"))
    run(ShuffleOp, [x], {0: "n,3,w"}, reshape_dims=DimsAttr.of([parse("3*n"), sym("w")]))


def test_run_time_shape_1_37b() -> None:
    """The guide's example: [3, 0] reshaped by [0, 0]."""
    x, shape = np.zeros((3, 0), np.float32), np.array([0, 0], np.int64)
    assert run(ShuffleOp, [x, shape])[0].shape == (3, 0)
    assert run(ShuffleOp, [x, shape], zero_is_placeholder=False)[0].shape == (0, 0)
    op = layer(ShuffleOp, [x, shape])
    assert all(is_unknown(dim) for dim in dims(op.results[0].type))


@pytest.mark.parametrize(("x", "shape"), [((0, 3), [0, -1]), ((2, 3), [4, -1]), ((3, 0), [-1, 0])])
def test_minus_one_without_one_solution_1_37c(x: tuple[int, ...], shape: list[int]) -> None:
    array = np.zeros(x, np.float32)
    with pytest.raises(VerifyException, match="C7"):
        run(ShuffleOp, [array], reshape_dims=DimsAttr.of(shape))
    with pytest.raises(VerifyException, match="C7"):
        run(ShuffleOp, [array, np.array(shape, np.int64)])
