"""Convolutions by warpgroups from planes to planes of channels, against the reference, without races."""

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
from mlirt.kernels.lib.cuda.warpgroups.plane_walk import PlaneWalk


def check(problem: Problem, tile: str, element: str = "f16") -> ModuleOp:
    """Compare a convolution in one configuration."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element)
    text = text.replace("{stride", f'{{fused.tactic = "cuda_wgmma_plane_columns:{tile}", stride', 1)
    return check_on_threads(text, inputs, tolerance=TOLERANCE[element])


def stores(module: ModuleOp) -> list[StoreFragmentOp]:
    """The stores of the kernel."""
    kernels = [one for one in module.body.block.ops if isinstance(one, FuncOp)]
    return [op for one in kernels for op in one.walk() if isinstance(op, StoreFragmentOp)]


KINDS = {
    "rows between gaps": (Problem((2, 8, 10, 16), (72, 8, 3, 3), residual=True), "64x64s3", 2),
    "padding above": (Problem((2, 16, 8, 16), (40, 16, 3, 1), pre=(1, 0), post=(1, 0), residual=True), "64x64s3", 8),
    "lines of rows": (Problem((1, 3, 3, 72), (9, 3, 3, 3), pre=(1,), post=(1,), residual=True), "64x64s3", 8),
    "steps down": (Problem((2, 5, 9, 72), (9, 5, 3, 2), stride=(2, 1), pre=(1, 0)), "64x128s3", 0),
    "more channels than a line": (Problem((5, 72, 8, 16), (70, 72, 1, 1), residual=True), "128x64s3", 8),
    "persistent blocks": (Problem((3, 24, 8, 40), (64, 24, 2, 3)), "64x64s4t", 2),
    "shared sums": (Problem((2, 40, 10, 16), (40, 40, 3, 3)), "64x64s3c2", 2),
    "one dimension": (Problem((2, 8, 96), (10, 8, 5), dilation=(2,), pre=(4,), post=(4,)), "64x64s3", 8),
    "three dimensions": (Problem((1, 3, 5, 6, 16), (9, 3, 2, 3, 3), pre=(0, 1, 0), post=(1, 1, 0)), "64x64s3", 2),
    "volumes with padding": (Problem((1, 12, 4, 3, 64), (9, 12, 2, 3, 3), pre=(1,), post=(1,)), "64x64s3", 8),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_kinds_of_convolutions(kind: str, element: str) -> None:
    problem, tile, together = KINDS[kind]
    module = check(problem, tile, element)
    assert kernel_names(module) == ["convolution"]
    found = [store for store in stores(module) if store.buffer.name_hint == "output"]
    assert {store.group(store.buffer) for store in found} == {together or 1}


def test_what_is_outside_of_the_image_is_no_number_of_it() -> None:
    """Channels, taps and positions that do not exist are zeros, whatever lies in memory behind the input."""
    problem = Problem((1, 3, 4, 64), (9, 3, 3, 3), pre=(1,), post=(1,))
    x = np.full(problem.input, np.inf, np.float16)
    x[0, :, 1:3, 1:-1] = 1
    text = convolution_text(problem, "f16")
    text = text.replace("{stride", '{fused.tactic = "cuda_wgmma_plane_columns:64x64s3", stride', 1)
    with np.errstate(all="ignore"):
        check_on_threads(text, {"x": x, "r": np.zeros(problem.output, np.float16)}, tolerance=1e-2)


def test_walks_have_few_columns() -> None:
    """As many dimensions are one as lines and groups of columns allow."""
    plain, padded = (1, 1, 0, 0), (1, 1, 1, 1)

    def walk(sizes: tuple[int, ...], made: tuple[int, ...], spatial: tuple[tuple[int, int, int, int], ...], taps: int):
        found = PlaneWalk.of(sizes, made, (taps,) * len(sizes), spatial, 8, depth=64, joined=len(sizes))
        return None if found is None else (found.flat, found.columns)

    assert walk((32, 32), (30, 30), (plain, plain), 3) == (2, 29 * 32 + 30)
    assert walk((64, 64), (64, 64), (padded, padded), 3) == (1, 64 * 64)
    assert walk((7, 9), (7, 9), (plain, plain), 1) == (2, 63)
    assert walk((9, 9), (7, 7), (plain, plain), 3) == (1, 7 * 64)
    assert walk((4, 8, 16), (2, 6, 14), (plain,) * 3, 3) == (3, 128 + 5 * 16 + 14)
    assert walk((64, 64), (32, 32), ((2, 1, 1, 1),) * 2, 3) is None


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    window, channels = pair(1, 3), data.draw(st.integers(1, 70))
    problem = Problem(
        (
            data.draw(st.sampled_from([1, 2, 5])),
            channels,
            data.draw(st.integers(6, 9)),
            8 * data.draw(st.integers(2, 9)),
        ),
        (data.draw(st.integers(1, 70)), channels, *window),
        (data.draw(st.integers(1, 2)), 1),
        pair(1, 2),
        pair(0, 2),
        pair(0, 2),
        residual=data.draw(st.booleans()),
    )
    _, _, *lengths = problem.output
    assume(min(lengths) > 0 and lengths[0] * lengths[1] >= 64 and lengths[0] * lengths[1] % 2 == 0)
    check(problem, data.draw(st.sampled_from(["64x64s3", "128x64s3"])))
