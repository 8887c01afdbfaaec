"""Tiled matrix products for GPUs against the reference, on random shapes, without races or bad indices."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, constant, product_text
from gpu_kernels import check_on_threads, kernel_names, run_on_threads
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module
from xdsl.dialects.builtin import IntegerAttr

from mlirt.dialects.kernel.async_copy import CopyAsyncOp
from mlirt.dialects.kernel.core import FuncOp
from mlirt.passes.pipeline import run_passes


def check(
    sizes: tuple[int, int, int],
    element: str,
    flips: tuple[bool, bool] = (False, False),
    batch: tuple[tuple[int, ...], tuple[int, ...]] = ((), ()),
    tactic: str = "cuda_tiles",
) -> list[str]:
    """Compare a product of (rows, columns, depth); returns the kernels that it became."""
    rows, columns, depth = sizes
    left = (*batch[0], *((depth, rows) if flips[0] else (rows, depth)))
    right = (*batch[1], *((columns, depth) if flips[1] else (depth, columns)))
    result = (*np.broadcast_shapes(*batch), rows, columns)
    rng = np.random.default_rng(0)
    shapes = {"x": left, "w": right, "b": (columns,)}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = product_text(left, right, result, element, flips)
    return kernel_names(check_on_threads(text, inputs, tactic=tactic, tolerance=TOLERANCE[element]))


@pytest.mark.parametrize(("element", "left", "right"), list(product(DTYPES, (False, True), (False, True))))
def test_every_orientation_of_both_operands(element: str, left: bool, right: bool) -> None:
    assert check((70, 96, 48), element, (left, right)) == ["matmul"]


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("left", [False, True])
@pytest.mark.parametrize("sizes", [(70, 96, 48), (33, 40, 47), (5, 24, 70)])
def test_a_wider_factor_is_rounded_as_it_is_read(sizes: tuple[int, int, int], left: bool, element: str) -> None:
    """What is multiplied is the same as behind a launch that rounds, to the bit."""
    rows, columns, depth = sizes
    shapes = {"x": (depth, rows) if left else (rows, depth), "w": (depth, columns), "b": (columns,)}
    rng, half = np.random.default_rng(0), DTYPES[element]
    x, w, b = (rng.standard_normal(shape, np.float32) for shape in shapes.values())
    found = [
        run_on_threads(
            product_text(shapes["x"], shapes["w"], (rows, columns), element, (left, False), source),
            {"x": x if source else x.astype(half), "w": w.astype(half), "b": b.astype(half)},
            "cuda_tiles",
        )
        for source in ("f32", "")
    ]
    np.testing.assert_array_equal(found[0], found[1])


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.tuples(st.integers(5, 80), st.integers(5, 80), st.integers(1, 70)),
    st.sampled_from(sorted(DTYPES)),
    st.tuples(st.booleans(), st.booleans()),
)
def test_any_sizes(sizes: tuple[int, int, int], element: str, flips: tuple[bool, bool]) -> None:
    check(sizes, element, flips)


@pytest.mark.parametrize("element", ["f32", "f16"])
@pytest.mark.parametrize("batch", [((2, 3), (2, 3)), ((2, 1), (1, 3)), ((4,), (1,))])
def test_batches_broadcast(element: str, batch: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert check((33, 17, 20), element, (False, True), batch) == ["matmul"]


@pytest.mark.parametrize("element", ["f32", "f16"])
def test_long_sums_are_split_and_added_by_a_second_kernel(element: str) -> None:
    assert check((40, 48, 520), element, tactic="cuda_tiles:32x32p3") == ["matmul", "matmul_sum"]


@pytest.mark.parametrize("element", DTYPES)
@pytest.mark.parametrize("batch", [((), ()), ((3,), (3,))])
def test_long_sums_are_split_over_a_cluster(batch: tuple[tuple[int, ...], ...], element: str) -> None:
    assert check((40, 48, 520), element, batch=(batch[0], batch[1])) == ["matmul"]
    for choice in ("32x32c4", "64x64c8"):
        assert check((40, 70, 520), element, batch=(batch[0], batch[1]), tactic=f"cuda_tiles:{choice}") == ["matmul"]


@pytest.mark.parametrize("tile", ["128x128", "64x64", "32x32", "128x128bf16x6", "64x64bf16x6"])
@pytest.mark.parametrize("flips", list(product((False, True), (False, True))))
def test_products_of_any_orientation_in_every_tile(flips: tuple[bool, bool], tile: str) -> None:
    """Rows and columns beyond a tile, a depth that is no multiple of anything, a batch of five."""
    assert check((37, 70, 51), "f32", flips, ((5,), (5,)), f"cuda_tiles:{tile}") == ["matmul"]
    assert check((140, 44, 72), "f32", flips, ((), ()), f"cuda_tiles:{tile}") == ["matmul"]


@pytest.mark.parametrize("tile", ["128x128", "32x32", "64x64bf16x6"])
@pytest.mark.parametrize("sizes", [(40, 72, 64), (33, 41, 47)])
@pytest.mark.parametrize("flip", [False, True])
def test_known_factors_lie_along_their_own_dimension(flip: bool, sizes: tuple[int, int, int], tile: str) -> None:
    """Nothing of them is transposed on its way."""
    rows, columns, depth = sizes
    rng, shape = np.random.default_rng(0), (1, *((columns, depth) if flip else (depth, columns)))
    w, b = (rng.standard_normal(one, np.float32) for one in (shape, (columns,)))
    text = product_text((5, rows, depth), shape, (5, rows, columns), "f32", (False, flip))
    for name, array in (("w", w), ("b", b)):
        type_ = f"tensor<{'x'.join(map(str, array.shape))}xf32>"
        text = re.sub(rf",? %{name}: [^{{]*{{trt.name = \"{name}\"}}", "", text, count=1)
        text = text.replace("%y = fused", f"%{name} = {constant(array, 'f32')} : {type_}\n      %y = fused", 1)
    inputs = {"x": rng.standard_normal((5, rows, depth), np.float32)}
    module = check_on_threads(text, inputs, tactic=f"cuda_tiles:{tile}")
    copies = [op for op in module.walk() if isinstance(op, CopyAsyncOp) and op.source.name_hint != "lhs"]
    assert copies
    assert {op.count.value.data for op in copies} == {4}


def test_few_rows_are_left_to_one_warp_per_element() -> None:
    shapes = ((1, 64), (100, 64), (1, 100))
    module, context = parse_module(product_text(*shapes, "f32", (False, True)))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads")
    (kernel,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    assert not any(op.name == "kernel.outer_product" for op in kernel.walk())
    assert any(op.name == "kernel.shuffle" for op in kernel.walk())


def test_indices_are_narrow_where_everything_is_small() -> None:
    module, context = parse_module(product_text((64, 64), (64, 64), (64, 64), "f32", (False, False)))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda},map-parallel-to-threads")
    (kernel,) = [op for op in module.body.block.ops if isinstance(op, FuncOp)]
    bits = kernel.attributes["index_bits"]
    assert isinstance(bits, IntegerAttr)
    assert bits.value.data == 32
