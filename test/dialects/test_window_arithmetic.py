"""Lengths and pads of windows: the six padding modes against TensorRT's formulas and counting
(tensorrt-features.md#1.6g).
"""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.dialects.symbolic import evaluate, sym
from mlirt.dialects.window_arithmetic import PaddingMode, ShortInput, TransposedWindow, Window

MODES = list(PaddingMode)

windows = st.builds(
    Window,
    size=st.integers(1, 5),
    stride=st.integers(1, 4),
    dilation=st.integers(1, 3),
    pre=st.integers(0, 4),
    post=st.integers(0, 4),
    mode=st.sampled_from(MODES),
    short_input=st.sampled_from(ShortInput),
)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (PaddingMode.EXPLICIT_ROUND_DOWN, 5),
        (PaddingMode.EXPLICIT_ROUND_UP, 5),
        (PaddingMode.CAFFE_ROUND_DOWN, 5),
        (PaddingMode.CAFFE_ROUND_UP, 6),
        (PaddingMode.SAME_UPPER, 3),
        (PaddingMode.SAME_LOWER, 3),
    ],
)
def test_example_of_the_header(mode: PaddingMode, expected: int) -> None:
    # NvInfer.h: I = 6, B = 3, A = 2, S = 2, F = 3.
    assert Window(3, 2, 1, 3, 2, mode).output_length(6) == expected


@given(windows, st.integers(1, 40))
def test_formulas_1_6g(window: Window, length: int) -> None:
    extent = 1 + window.dilation * (window.size - 1)
    post = window.pre if window.mode.startswith("caffe") else window.post
    if window.mode.startswith("same"):
        expected = math.ceil(length / window.stride)
    else:
        rounding = math.ceil if window.mode.endswith("up") else math.floor
        expected = rounding((length + window.pre + post - extent) / window.stride) + 1
        if window.takes_short_input:
            expected = max(expected, 1)
    assert window.output_length(length) == expected


@given(windows, st.integers(1, 40))
def test_same_pads_to_what_the_windows_need(window: Window, length: int) -> None:
    if not window.mode.startswith("same"):
        return
    pre, post = window.padding(length)
    assert isinstance(pre, int)
    assert isinstance(post, int)
    count = window.output_length(length)
    assert isinstance(count, int)
    assert pre + post == max((count - 1) * window.stride + window.extent - length, 0)
    assert 0 <= (post - pre if window.mode is PaddingMode.SAME_UPPER else pre - post) <= 1


@given(windows, st.integers(1, 40))
def test_windows_reach_the_overhang_and_no_further(window: Window, length: int) -> None:
    count, overhang = window.output_length(length), window.overhang(length)
    pre, post = window.padding(length)
    assert isinstance(count, int)
    if count < 1:
        return
    reach = (count - 1) * window.stride + window.extent
    spare = length + pre + post + overhang - reach
    assert isinstance(spare, int)
    assert spare == 0 or (spare > 0 and overhang == 0)


@given(windows, st.integers(1, 40))
def test_symbolic_lengths_evaluate_to_the_same(window: Window, length: int) -> None:
    symbolic, values = sym("n"), {"n": length}
    assert evaluate(window.output_length(symbolic), values) == window.output_length(length)
    assert evaluate(window.overhang(symbolic), values) == window.overhang(length)
    assert [evaluate(pad, values) for pad in window.padding(symbolic)] == list(window.padding(length))


@given(windows, st.integers(0, 40))
def test_short_inputs_have_a_window_where_less_than_a_stride_is_missing(window: Window, length: int) -> None:
    if not window.takes_short_input:
        return
    missing = window.extent - length - window.pre - window.post
    fits = window.spare_cells(length)
    assert isinstance(fits, int)
    assert (fits >= 0) == (length > 0 and missing < window.stride)
    if fits >= 0:
        count = window.output_length(length)
        assert isinstance(count, int)
        assert count == max(math.floor(-missing / window.stride) + 1, 1)
        padded = sum(window.padding(length)) - window.pre - window.post  # pyright: ignore[reportOperatorIssue]
        assert padded == (max(missing, 0) if window.short_input is ShortInput.PADDED else 0)


def test_windows_that_overhang_are_named_only_where_there_can_be_some() -> None:
    overhanging = ShortInput.OVERHANGING
    assert str(Window(2, 2, short_input=overhanging).output_length(sym("n"))) == "max((n // 2), 1)"
    assert str(Window(3, 2, 1, 1, 1, short_input=overhanging).output_length(sym("n"))) == "((n + 1) // 2)"
    assert str(Window(3, 1, short_input=overhanging).output_length(sym("n"))) == "n - 2"


def test_stride_1_keeps_the_symbol() -> None:
    assert Window(3, 1, 1, 1, 1).output_length(sym("n")) == sym("n")
    assert Window(5, 1, 1, 0, 0, PaddingMode.SAME_LOWER).padding(sym("n")) == (2, 2)


@given(
    st.builds(
        TransposedWindow,
        size=st.integers(1, 5),
        stride=st.integers(1, 4),
        dilation=st.integers(1, 3),
        pre=st.integers(0, 2),
        post=st.integers(0, 2),
        mode=st.sampled_from(MODES),
    ),
    st.integers(1, 20),
)
def test_transposed_lengths_1_7(window: TransposedWindow, length: int) -> None:
    extent = 1 + window.dilation * (window.size - 1)
    full = (length - 1) * window.stride + extent
    if window.mode.startswith("same"):
        expected = min(length * window.stride, full)
    else:
        expected = full - window.pre - (window.pre if window.mode.startswith("caffe") else window.post)
    assert window.output_length(length) == expected
