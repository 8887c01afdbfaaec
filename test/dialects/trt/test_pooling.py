"""Pooling (tensorrt-features.md#1.26a-1.26d): the reference against ONNX Runtime and against windows cut out one by
one.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from trt_layers import onnx_node, random, run

from mlirt.dialects.trt.pooling import PoolingKind, PoolingOp
from mlirt.dialects.window_arithmetic import PaddingMode, Window


@pytest.mark.parametrize("spatial", [(9,), (9, 7), (5, 6, 7)], ids=["1d", "2d_1_26a", "3d_1_26a"])
@pytest.mark.parametrize("kind", ["MaxPool", "AveragePool", "AveragePoolIncludingPads"])
def test_against_onnxruntime(spatial: tuple[int, ...], kind: str) -> None:
    rank = len(spatial)
    x, window, stride, pads = random((2, 3, *spatial)), [3] * rank, [2, 1, 2][:rank], [1, 0, 1][:rank]
    including = kind.endswith("IncludingPads")
    extra = {"count_include_pad": 1} if including else {}
    (expected,) = onnx_node(
        kind.removesuffix("IncludingPads"), [x], kernel_shape=window, strides=stride, pads=[*pads, *pads[::-1]], **extra
    )
    (y,) = run(
        PoolingOp,
        [x],
        {0: "n,3," + ",".join("hwd"[:rank])},
        kind=PoolingKind.MAX if kind == "MaxPool" else PoolingKind.AVERAGE,
        window=window,
        stride=stride,
        pre_padding=pads,
        post_padding=pads[::-1],
        average_count_excludes_padding=not including,
    )
    assert_allclose(y, expected, rtol=1e-5, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    window=st.builds(
        Window,
        size=st.integers(1, 4),
        stride=st.integers(1, 3),
        dilation=st.integers(1, 2),
        pre=st.integers(0, 3),
        post=st.integers(0, 3),
        mode=st.sampled_from(list(PaddingMode)),
    ),
    excludes=st.booleans(),
)
def test_definition_1_26b(window: Window, excludes: bool) -> None:
    """Each window is cut out of the input cell by cell."""
    length = 8
    x = random((length,))[None]
    (largest,), (mean,) = (
        run(
            PoolingOp,
            [x],
            {0: "n,w"},
            kind=kind,
            window=[window.size],
            stride=[window.stride],
            dilation=[window.dilation],
            pre_padding=[window.pre],
            post_padding=[window.post],
            padding_mode=window.mode,
            average_count_excludes_padding=excludes,
        )
        for kind in (PoolingKind.MAX, PoolingKind.AVERAGE)
    )
    pre, post = (int(str(pad)) for pad in window.padding(length))
    for p in range(largest.shape[1]):
        cells = [p * window.stride - pre + r * window.dilation for r in range(window.size)]
        inside = [float(x[0, cell]) for cell in cells if 0 <= cell < length]
        counted = len(inside) if excludes else sum(-pre <= c < length + post for c in cells)
        assert largest[0, p] == np.float32(max(inside, default=-np.inf))
        assert_allclose(mean[0, p], sum(inside) / counted if counted else 0, rtol=1e-5, atol=1e-6)


def test_ceil_mode_against_onnxruntime_1_26a() -> None:
    x = random((1, 2, 10, 10))
    (expected,) = onnx_node("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], ceil_mode=1)
    (y,) = run(
        PoolingOp, [x], kind=PoolingKind.MAX, window=[3, 3], stride=[2, 2], padding_mode=PaddingMode.EXPLICIT_ROUND_UP
    )
    assert_array_equal(y, expected)


def test_blend_1_26c() -> None:
    x = random((1, 2, 6, 6))
    results = {kind: run(PoolingOp, [x], kind=kind, window=[2, 2], blend_factor=0.25)[0] for kind in PoolingKind}
    expected = 0.75 * results[PoolingKind.MAX] + 0.25 * results[PoolingKind.AVERAGE]
    assert_allclose(results[PoolingKind.MAX_AVERAGE_BLEND], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("dtype", "lowest"), [("float32", -np.inf), ("float16", -np.inf), ("int8", -128), ("uint8", 0)]
)
def test_windows_in_the_padding_1_26d(dtype: str, lowest: float) -> None:
    x = np.ones((1, 1, 2), dtype)
    (y,) = run(PoolingOp, [x], kind=PoolingKind.MAX, window=[2], pre_padding=[2], post_padding=[2])
    assert_array_equal(y[0, 0], np.array([lowest, 1, 1, 1, lowest], dtype))
    (mean,) = run(PoolingOp, [x], kind=PoolingKind.AVERAGE, window=[2], pre_padding=[2], post_padding=[2])
    assert_array_equal(mean[0, 0], np.array([0, 1, 1, 1, 0], dtype))


def test_large_windows_agree_with_the_whole_mean() -> None:
    x = random((1, 2, 20, 20))
    (y,) = run(PoolingOp, [x], kind=PoolingKind.AVERAGE, window=[20, 20])
    assert_allclose(y[..., 0, 0], x.mean((2, 3)), rtol=1e-4, atol=1e-6)
