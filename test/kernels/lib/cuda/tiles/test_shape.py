"""Every tile shape multiplies and convolves rightly, whole and split, and the choice among them is sensible."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from contractions import DTYPES, PROBLEMS, TOLERANCE, Problem, convolution_text, product_text
from gpu_kernels import check_on_threads, kernel_names

from mlirt.dialects.device_files import gpu_device
from mlirt.kernels.lib.cuda.tiles.shape import (
    MATRIX_UNIT,
    MULTIPLY_ADD,
    WarpTile,
    Work,
    choice_named,
    choices,
)

SHAPES = [("f32", shape) for shape in MULTIPLY_ADD] + [("f16", shape) for shape in MATRIX_UNIT]


def sizes(shape: WarpTile) -> str:
    return f"{shape.rows}x{shape.columns}"


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    ("element", "shape"), SHAPES, ids=lambda value: value if isinstance(value, str) else sizes(value)
)
def test_products(element: str, shape: WarpTile, parts: int) -> None:
    rows, columns, depth = shape.rows + 9, shape.columns + 24, 3 * shape.depth + 8
    rng = np.random.default_rng(0)
    shapes = {"x": (rows, depth), "w": (depth, columns), "b": (columns,)}
    inputs = {name: rng.standard_normal(extent).astype(DTYPES[element]) for name, extent in shapes.items()}
    text = product_text(shapes["x"], shapes["w"], (rows, columns), element, (False, False))
    tactic = f"cuda_tiles:{replace(shape, parts=parts).name}"
    found = kernel_names(check_on_threads(text, inputs, tactic=tactic, tolerance=TOLERANCE[element]))
    assert found == ["matmul", "matmul_sum"][:parts]


@pytest.mark.parametrize("name", ["odd channels", "few channels", "pointwise, 16-byte pixels"])
@pytest.mark.parametrize(
    ("element", "shape"), SHAPES, ids=lambda value: value if isinstance(value, str) else sizes(value)
)
def test_convolutions(element: str, shape: WarpTile, name: str) -> None:
    problem: Problem = PROBLEMS[name]
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {key: rng.standard_normal(extent).astype(DTYPES[element]) for key, extent in shapes.items()}
    tactic = f"cuda_implicit_gemm:{replace(shape, parts=2).name}"
    check_on_threads(convolution_text(problem, element), inputs, tactic=tactic, tolerance=TOLERANCE[element])


def best(
    shapes: Sequence[WarpTile], sizes: tuple[int, int, int], *, may_split: bool = True, device: str = "h200"
) -> WarpTile:
    """The choice with the least estimate for a product of (rows, columns, depth)."""
    rows, columns, depth = sizes
    work = Work(rows, columns, 1, lambda shape: -(-depth // shape.depth), device=gpu_device(device))
    return min(choices(shapes, work.steps, may_split=may_split), key=work.microseconds)


@pytest.mark.parametrize("shapes", [MULTIPLY_ADD, MATRIX_UNIT])
def test_large_products_take_large_tiles_and_are_not_split(shapes: tuple[WarpTile, ...]) -> None:
    assert best(shapes, (4096, 4096, 4096)).name == "128x128"


@pytest.mark.parametrize("shapes", [MULTIPLY_ADD, MATRIX_UNIT])
def test_few_results_of_long_sums_are_split(shapes: tuple[WarpTile, ...]) -> None:
    assert best(shapes, (512, 49, 4608)).parts > 1


def test_no_part_is_empty() -> None:
    for depth in range(1, 600, 7):
        for choice in choices(MULTIPLY_ADD, lambda shape: -(-depth // shape.depth), may_split=True):
            steps = -(-depth // choice.depth)
            assert (choice.parts - 1) * -(-steps // choice.parts) < steps


def test_what_may_not_be_split_is_not() -> None:
    assert best(MATRIX_UNIT, (64, 64, 8192), may_split=False).parts == 1


@pytest.mark.parametrize("shapes", [MULTIPLY_ADD, MATRIX_UNIT])
def test_names_tell_all(shapes: tuple[WarpTile, ...]) -> None:
    found = choices(shapes, lambda shape: 1000 // shape.depth, may_split=True, has_clusters=True)
    for choice in found:
        assert choice_named(shapes, choice.name) == choice
    assert {choice.parts for choice in found if choice.is_cluster} <= {2, 3, 4, 6, 8}
    for name in ("", "cat", "64x64p0", "96x96", "64x64p", "64x64c1", "64x64c5"):
        assert choice_named(shapes, name) is None


@pytest.mark.parametrize("shapes", [MULTIPLY_ADD, MATRIX_UNIT])
def test_choices_follow_from_the_processors(shapes: tuple[WarpTile, ...]) -> None:
    """With fewer processors fewer blocks are enough: sums are split in fewer parts, or tiles are larger."""
    sizes = [(128 * rows, 128, 4096) for rows in range(1, 33)]
    chosen = {device: [best(shapes, one, device=device).name for one in sizes] for device in ("h200", "h100-sxm", "l4")}
    assert chosen["h200"] == chosen["h100-sxm"]
    assert chosen["h200"] != chosen["l4"]
