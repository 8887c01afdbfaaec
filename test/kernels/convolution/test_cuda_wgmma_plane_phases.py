"""Deconvolutions by warpgroups from planes to planes of channels, against the reference, without races."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, convolution_text
from gpu_kernels import check_on_threads, kernel_names
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.kernels.lib.deconvolution_phases import AlignedAxis, aligned_kernels


def check(problem: Problem, tile: str, element: str = "f16") -> ModuleOp:
    """Compare a deconvolution in one configuration."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element)
    text = text.replace("{stride", f'{{fused.tactic = "cuda_wgmma_plane_phases:{tile}", stride', 1)
    return check_on_threads(text, inputs, tolerance=TOLERANCE[element])


def widths(module: ModuleOp) -> set[int]:
    """How many elements the stores of results move together."""
    kernels = [one for one in module.body.block.ops if isinstance(one, FuncOp)]
    stores = [op for one in kernels for op in one.walk() if isinstance(op, StoreFragmentOp)]
    return {store.group(store.buffer) for store in stores if store.buffer.name_hint == "output"}


KINDS = {
    "twice the size": (
        Problem((2, 16, 5, 16), (16, 40, 4, 4), stride=(2,), pre=(1,), post=(1,), transposed=True, residual=True),
        "64x64s3",
        8,
    ),
    "a row more": (
        Problem((2, 24, 6, 16), (24, 9, 3, 3), stride=(2,), pre=(1,), post=(0,), transposed=True, residual=True),
        "64x64s3",
        8,
    ),
    "all that is reached": (Problem((1, 8, 5, 24), (8, 33, 4, 4), stride=(2,), transposed=True), "128x64s3", 2),
    "wide windows": (
        Problem((1, 72, 4, 16), (72, 16, 5, 5), stride=(2,), pre=(2,), post=(2,), transposed=True),
        "64x128s3",
        0,
    ),
    "steps of three down": (
        Problem((2, 8, 4, 64), (8, 12, 5, 2), stride=(3, 2), pre=(1, 0), transposed=True, residual=True),
        "64x64s4t",
        8,
    ),
    "volumes": (
        Problem((1, 3, 3, 4, 16), (3, 18, 3, 3, 3), stride=(2,), pre=(1,), post=(0,), transposed=True, residual=True),
        "64x64s3",
        8,
    ),
    "images of one row": (Problem((3, 8, 64), (8, 8, 2), stride=(2,), transposed=True, residual=True), "64x64s3", 8),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_kinds_of_deconvolutions(kind: str, element: str) -> None:
    problem, tile, together = KINDS[kind]
    module = check(problem, tile, element)
    assert kernel_names(module) == ["convolution"]
    assert widths(module) == {together or 1}


@pytest.mark.parametrize("sizes", [(5, 4, 2, 1, 1), (6, 3, 2, 1, 0), (4, 7, 3, 2, 1), (5, 1, 2, 0, 0)])
def test_remainders_of_places(sizes: tuple[int, int, int, int, int]) -> None:
    """Each output is the sum of the taps that reach it, by the convolution of its remainder."""
    length, window, stride, pre, post = sizes
    output = (length - 1) * stride + window - pre - post
    axis, rng = AlignedAxis(length, output, stride, window, pre), np.random.default_rng(0)
    x, kernel = rng.standard_normal(length), rng.standard_normal((1, 1, window))
    expected = np.zeros((length - 1) * stride + window)
    for place, value in enumerate(x):
        expected[place * stride : place * stride + window] += value * kernel[0, 0]
    parts = aligned_kernels(kernel, [axis])
    padded = np.pad(x, (axis.pre_padding, max(axis.post_padding, 0)))
    found = [padded[y // stride : y // stride + axis.taps] @ parts[y % stride, 0, 0] for y in range(output)]
    np.testing.assert_allclose(found, expected[pre : pre + output])


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_deconvolution(data: st.DataObject) -> None:
    def draw(low: int, high: int) -> int:
        return data.draw(st.integers(low, high))

    windows, strides = (draw(1, 5), draw(1, 5)), (draw(1, 3), 2)
    crops = [(draw(0, min(2, size - 1)), draw(0, min(2, size - 1))) for size in windows]
    channels = draw(1, 40)
    problem = Problem(
        (data.draw(st.sampled_from([1, 2, 5])), channels, draw(3, 6), 8 * draw(2, 5)),
        (channels, draw(1, 40), *windows),
        stride=strides,
        pre=tuple(low for low, _ in crops),
        post=tuple(high for _, high in crops),
        transposed=True,
        residual=data.draw(st.booleans()),
    )
    _, _, *lengths = problem.output
    assume(min(lengths) > 0 and -(-lengths[0] // strides[0]) * -(-lengths[1] // 2) >= 64)
    check(problem, data.draw(st.sampled_from(["64x64s3", "128x64s3"])))
