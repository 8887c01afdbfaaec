"""Every tile shape multiplies and convolves rightly, whole and split, and the choice among them is sensible."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from contractions import DTYPES, PROBLEMS, TOLERANCE, Problem, convolution_text, product_text
from gpu_kernels import check_on_threads, kernel_names

from mlirt.passes.lowering.tiles import product
from mlirt.passes.lowering.tiles.shape import MATRIX_UNIT, MULTIPLY_ADD, TileShape, Work, choose

SHAPES = [("f32", shape) for shape in MULTIPLY_ADD] + [("f16", shape) for shape in MATRIX_UNIT]
Force = Callable[[TileShape, int], None]


@pytest.fixture
def force(monkeypatch: pytest.MonkeyPatch) -> Force:
    """Let lowerings have no choice."""

    def install(shape: TileShape, parts: int) -> None:
        def forced(shapes: Sequence[TileShape], work: Work, *, may_split: bool) -> tuple[TileShape, int]:
            return shape, parts

        monkeypatch.setattr(product, "choose", forced)

    return install


def sizes(shape: TileShape) -> str:
    return f"{shape.rows}x{shape.columns}"


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize(
    ("element", "shape"), SHAPES, ids=lambda value: value if isinstance(value, str) else sizes(value)
)
def test_products(element: str, shape: TileShape, parts: int, force: Force) -> None:
    force(shape, parts)
    rows, columns, depth = shape.rows + 9, shape.columns + 24, 3 * shape.depth + 8
    rng = np.random.default_rng(0)
    shapes = {"x": (rows, depth), "w": (depth, columns), "b": (columns,)}
    inputs = {name: rng.standard_normal(extent).astype(DTYPES[element]) for name, extent in shapes.items()}
    text = product_text(shapes["x"], shapes["w"], (rows, columns), element, (False, False))
    found = kernel_names(check_on_threads(text, inputs, tactic="cuda", tolerance=TOLERANCE[element]))
    assert found == ["matmul", "matmul_sum"][:parts]


@pytest.mark.parametrize("name", ["odd channels", "few channels", "pointwise, 16-byte pixels"])
@pytest.mark.parametrize(
    ("element", "shape"), SHAPES, ids=lambda value: value if isinstance(value, str) else sizes(value)
)
def test_convolutions(element: str, shape: TileShape, name: str, force: Force) -> None:
    force(shape, 2)
    problem: Problem = PROBLEMS[name]
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {key: rng.standard_normal(extent).astype(DTYPES[element]) for key, extent in shapes.items()}
    check_on_threads(convolution_text(problem, element), inputs, tactic="cuda", tolerance=TOLERANCE[element])


def work(rows: int, columns: int, depth: int) -> Work:
    return Work(rows, columns, 1, lambda shape: -(-depth // shape.depth))


@pytest.mark.parametrize("shapes", [MULTIPLY_ADD, MATRIX_UNIT])
def test_large_products_take_large_tiles_and_are_not_split(shapes: tuple[TileShape, ...]) -> None:
    shape, parts = choose(shapes, work(4096, 4096, 4096), may_split=True)
    assert (shape.rows, shape.columns, parts) == (128, 128, 1)


@pytest.mark.parametrize("shapes", [MULTIPLY_ADD, MATRIX_UNIT])
def test_few_results_of_long_sums_are_split(shapes: tuple[TileShape, ...]) -> None:
    shape, parts = choose(shapes, work(512, 49, 4608), may_split=True)
    assert parts > 1
    assert work(512, 49, 4608).steps(shape) >= 2 * parts


def test_no_part_is_empty() -> None:
    for depth in range(1, 600, 7):
        shape, parts = choose(MULTIPLY_ADD, work(64, 64, depth), may_split=True)
        steps = -(-depth // shape.depth)
        assert (parts - 1) * -(-steps // parts) < steps


def test_what_may_not_be_split_is_not() -> None:
    assert choose(MATRIX_UNIT, work(64, 64, 8192), may_split=False)[1] == 1
