"""Slices (tensorrt-features.md#1.38a-1.38c): the reference against NumPy's indexing and pad modes."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from trt_layers import random, run
from xdsl.utils.exceptions import VerifyException

from mlirt.dialects.dims_attr import DimsAttr
from mlirt.dialects.slicing import SliceMode
from mlirt.dialects.symbolic_text import parse
from mlirt.dialects.trt.slice import SliceOp
from mlirt.errors import InvalidInputError

axes = st.tuples(st.integers(1, 6), st.integers(-8, 8), st.integers(0, 7), st.integers(-3, 3))


@settings(max_examples=150, deadline=None)
@given(st.lists(axes, min_size=1, max_size=3), st.sampled_from(list(SliceMode)))
def test_definition_1_38a(geometry: list[tuple[int, int, int, int]], mode: SliceMode) -> None:
    lengths, start, size, stride = (list(part) for part in zip(*geometry, strict=True))
    x = random(lengths)
    properties = {"start": DimsAttr.of(start), "size": DimsAttr.of(size), "stride": stride, "mode": mode}
    positions = [[s + j * d for j in range(n)] for s, n, d in zip(start, size, stride, strict=True)]
    inside = all(0 <= p < length for found, length in zip(positions, lengths, strict=True) for p in found)
    if mode is SliceMode.STRICT_BOUNDS and not inside:
        with pytest.raises(VerifyException, match=r"C5: trt\.slice: out of bounds slice, input dimensions"):
            run(SliceOp, [x], None, 1, **properties)
        return
    (y,) = run(SliceOp, [x], None, 1, **properties)
    expected = np.zeros(size, np.float32)
    for place in np.ndindex(*size):
        where = [found[j] for found, j in zip(positions, place, strict=True)]
        mapped = [_mapped(p, length, mode) for p, length in zip(where, lengths, strict=True)]
        if None not in mapped:
            expected[place] = x[tuple(mapped)]
    assert_array_equal(y, expected)


def _mapped(position: int, length: int, mode: SliceMode) -> int | None:
    """Where a position outside reads, found by walking."""
    if 0 <= position < length:
        return position
    if mode is SliceMode.FILL:
        return None
    if mode is SliceMode.CLAMP:
        return 0 if position < 0 else length - 1
    if mode is SliceMode.WRAP:
        while not 0 <= position < length:
            position += length if position < 0 else -length
        return position
    while length > 1 and not 0 <= position < length:
        position = -position if position < 0 else 2 * (length - 1) - position
    return position if length > 1 else 0


@pytest.mark.parametrize(
    ("mode", "pad"),
    [(SliceMode.WRAP, "wrap"), (SliceMode.CLAMP, "edge"), (SliceMode.FILL, "constant"), (SliceMode.REFLECT, "reflect")],
)
def test_modes_as_numpy_pads_1_38b(mode: SliceMode, pad: Literal["wrap", "edge", "constant", "reflect"]) -> None:
    x = random((4, 5))
    (y,) = run(SliceOp, [x], start=DimsAttr.of([-2, -3]), size=DimsAttr.of([8, 11]), stride=[1, 1], mode=mode)
    assert_array_equal(y, np.pad(x, ((2, 2), (3, 3)), pad))


def test_fill_value_1_38b() -> None:
    x, fill = random((3,), dtype="int32"), np.array(7, np.int32)
    (y,) = run(
        SliceOp,
        [x, None, None, None, fill],
        start=DimsAttr.of([-1]),
        size=DimsAttr.of([5]),
        stride=[1],
        mode=SliceMode.FILL,
    )
    assert_array_equal(y, [7, *x, 7])


def test_run_time_operands_1_38a() -> None:
    x = random((4, 6))
    start, size, stride = (np.array(values, np.int64) for values in ([3, 0], [2, 3], [-2, 2]))
    (y,) = run(SliceOp, [x, start, size, stride])
    assert_array_equal(y, x[3::-2, ::2])
    (z,) = run(SliceOp, [x, start], size=DimsAttr.of([2, 3]), stride=[-2, 2])
    assert_array_equal(z, y)
    with pytest.raises(InvalidInputError, match="out of bounds slice"):
        run(SliceOp, [x, start, size + 1, stride])


def test_symbolic_bounds() -> None:
    x = random((5, 6))
    (y,) = run(
        SliceOp,
        [x],
        {0: "n,6"},
        start=DimsAttr.of([parse("n - 1"), 0]),
        size=DimsAttr.of([parse("n"), 3]),
        stride=[-1, 2],
    )
    assert_array_equal(y, x[::-1, ::2])


def test_size_0_reads_nothing_1_38c() -> None:
    (y,) = run(SliceOp, [random((3,))], start=DimsAttr.of([9]), size=DimsAttr.of([0]), stride=[1])
    assert y.shape == (0,)


def test_empty_axis_1_38c() -> None:
    x = np.zeros((0,), np.float32)
    with pytest.raises(VerifyException, match="C5"):
        run(SliceOp, [x], start=DimsAttr.of([0]), size=DimsAttr.of([2]), stride=[1])
    (y,) = run(SliceOp, [x], start=DimsAttr.of([0]), size=DimsAttr.of([2]), stride=[1], mode=SliceMode.FILL)
    assert_array_equal(y, [0, 0])
