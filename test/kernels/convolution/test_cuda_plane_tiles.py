"""Convolutions of planes by the matrix units of warps, against the reference, without races."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, convolution_text, tensor
from gpu_kernels import check_on_threads, kernel_names, lower_to_threads
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module

from mlirt.dialects.interpreter import interpret
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.dialects.plan.interpreter import run_plan

PROBLEMS = {
    "3 x 3": Problem((2, 8, 13, 37), (24, 8, 3, 3)),
    "few channels": Problem((1, 3, 11, 36), (17, 3, 5, 3), pre=(2, 1), post=(2, 1), residual=True),
    "one channel": Problem((2, 1, 17, 20), (16, 1, 3, 7), pre=(1, 3), post=(1, 3)),
    "stride": Problem((2, 3, 35, 70), (16, 3, 3, 3), stride=(2,), pre=(1,), post=(1,)),
    "dilation": Problem((1, 4, 12, 23), (8, 4, 3, 3), dilation=(2, 3), pre=(2,), post=(1,), residual=True),
    "several slabs": Problem((1, 40, 10, 18), (70, 40, 3, 2), pre=(1,), post=(0,), residual=True),
    "odd channels": Problem((1, 13, 9, 18), (33, 13, 2, 2)),
    "volumes": Problem((1, 3, 6, 7, 34), (20, 3, 3, 3, 3)),
    "padded volumes": Problem((2, 10, 4, 5, 16), (9, 10, 3, 2, 3), (1, 2, 1), pre=(1,), post=(1,), residual=True),
    "pixels": Problem((1, 16, 9, 24), (33, 16, 1, 1)),
    "a part of a block": Problem((2, 8, 9, 18), (80, 8, 1, 3)),
}

DECONVOLUTIONS = {
    "4 x 4": Problem((1, 16, 9, 19), (16, 40, 4, 4), (2,), pre=(1,), post=(1,), transposed=True, residual=True),
    "remainders with other taps": Problem((1, 13, 8, 20), (13, 17, 3, 3), (2,), pre=(1,), transposed=True),
    "gaps without a tap": Problem((1, 8, 7, 12), (8, 9, 1, 2), (2, 3), transposed=True),
    "strides of one axis": Problem((2, 8, 5, 18), (8, 16, 2, 3), (3, 1), (1, 2), transposed=True, residual=True),
    "dilation": Problem((1, 8, 6, 11), (8, 8, 3, 2), (2, 4), (3, 3), pre=(2, 0), transposed=True),
    "several slabs": Problem((1, 72, 4, 9), (72, 17, 5, 5), (2,), pre=(2,), post=(1,), transposed=True),
    "few channels": Problem((1, 3, 5, 6, 17), (3, 16, 3, 3, 3), (2,), pre=(1,), post=(0,), transposed=True),
    "volumes": Problem((1, 24, 3, 5, 9), (24, 20, 3, 2, 4), (2, 1, 2), transposed=True, residual=True),
}

POOLED = {
    "largest of 2 x 2": (Problem((5, 8, 13, 37), (24, 8, 3, 3)), "max [2, 2]"),
    "mean of 4 x 4": (Problem((1, 3, 19, 40), (17, 3, 3, 3), pre=(1,), post=(1,)), "average [4, 4]"),
    "sums of rows": (Problem((2, 8, 9, 21), (16, 8, 1, 3)), "add [1, 4]"),
    "sums of columns": (Problem((2, 8, 9, 19), (9, 8, 1, 3)), "add [4, 1]"),
    "volumes": (Problem((1, 3, 6, 9, 34), (20, 3, 3, 3, 3)), "max [2, 4, 2]"),
    "several slabs": (Problem((1, 40, 10, 18), (70, 40, 3, 2), pre=(1,), post=(0,)), "max [2, 2]"),
    "results of a pixel": (
        Problem((1, 16, 9, 19), (16, 40, 4, 4), (2,), pre=(1,), post=(1,), transposed=True),
        "max [2, 2]",
    ),
    "results of pixels": (Problem((2, 13, 8, 20), (13, 17, 3, 3), (2,), pre=(1,), transposed=True), "average [4, 2]"),
    "deconvolved volumes": (
        Problem((1, 3, 5, 6, 17), (3, 16, 3, 3, 3), (2,), pre=(1,), transposed=True),
        "max [2, 2, 2]",
    ),
}


def pooled_text(problem: Problem, pooling: str, element: str = "f16") -> str:
    """As `convolution_text`, of which windows are pooled."""
    sizes = [int(size) for size in pooling.partition("[")[2].rstrip("]").split(",")]
    windows = [length // size for length, size in zip(problem.output[2:], sizes, strict=True)]
    before, after = tensor(problem.output, element), tensor((*problem.output[:2], *windows), element)
    text = convolution_text(problem, element).replace(
        "transposed =", f"pooling = #fused.pooling<{pooling}>, transposed ="
    )
    for place in ("-> ({} {{trt.name", "-> {} {{\n", "func.return %y : {}"):
        assert place.format(before) in text
        text = text.replace(place.format(before), place.format(after))
    return text


ADDED_UP = {
    "all results": (Problem((5, 8, 13, 37), (24, 8, 3, 3)), ""),
    "few channels": (Problem((1, 3, 19, 40), (17, 3, 3, 3), stride=(2,), pre=(1,), post=(1,)), ""),
    "largest of windows": (Problem((2, 8, 21, 37), (16, 8, 3, 3)), "max [2, 2]"),
    "volumes": (Problem((1, 3, 6, 9, 34), (20, 3, 3, 3, 3)), ""),
    "largest of volumes": (Problem((1, 8, 6, 9, 34), (9, 8, 3, 3, 3)), "max [2, 2, 2]"),
    "deconvolved volumes": (
        Problem((2, 3, 5, 6, 17), (3, 16, 3, 3, 3), (2,), pre=(1,), transposed=True),
        "max [2, 2, 2]",
    ),
    "means of a deconvolution": (
        Problem((2, 13, 8, 20), (13, 17, 3, 3), (2,), pre=(1,), transposed=True),
        "average [2, 2]",
    ),
}


def added_text(problem: Problem, pooling: str, width: int) -> str:
    """As `convolution_text`, of which each tile of `width` pixels is added up, perhaps by way of a pooling."""
    sizes = [int(size) for size in pooling.partition("[")[2].rstrip("]").split(",")] if pooling else [1] * 5
    lengths = [length // size for length, size in zip(problem.output[2:], sizes, strict=False)]
    rows = 256 // width
    tile = [rows, width] if len(lengths) == 2 else [2, rows // 2, width]
    strides = problem.along(problem.stride) if problem.transposed else [1] * 3
    box = [own * step // size for own, step, size in zip(tile, strides, sizes, strict=False)]
    counts = [-(-length // own) for length, own in zip(lengths, box, strict=True)]
    before, after = tensor(problem.output, "f16"), tensor((*problem.output[:2], *counts), "f32")
    more = f"totals = #fused.totals<{box} of {lengths}>, " + (
        f"pooling = #fused.pooling<{pooling}>, " if pooling else ""
    )
    text = convolution_text(problem, "f16").replace("transposed =", more + "transposed =")
    for place in ("-> ({} {{trt.name", "-> {} {{\n", "func.return %y : {}"):
        text = text.replace(place.format(before), place.format(after))
    return text.replace("%narrow = arith.truncf %max : f32 to f16", "").replace("%narrow : f16", "%max : f32")


def check(problem: Problem, element: str, choice: str) -> list[str]:
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element)
    module = check_on_threads(text, inputs, tactic=f"cuda_plane_tiles:{choice}", tolerance=TOLERANCE[element])
    assert "kernel.mma" in {op.name for op in module.walk()}
    return kernel_names(module)


def width_of(problem: Problem) -> int:
    """Output channels of a block: a thread has accumulators for 64 rows, also where they are those of remainders."""
    side = problem.along(problem.stride)[-1] if problem.transposed else 1
    return min(4 // side, -(-problem.output[1] // 16)) * 16


@pytest.mark.parametrize("element", ["f16", "bf16"])
@pytest.mark.parametrize("width", [32, 16])
@pytest.mark.parametrize("name", PROBLEMS)
def test_kinds_of_convolutions(name: str, width: int, element: str) -> None:
    problem = PROBLEMS[name]
    assert check(problem, element, f"{width}x{width_of(problem)}") == ["convolution"]


@pytest.mark.parametrize("width", [32, 16])
@pytest.mark.parametrize("name", DECONVOLUTIONS)
def test_kinds_of_deconvolutions(name: str, width: int) -> None:
    problem = DECONVOLUTIONS[name]
    assert check(problem, "f16", f"{width}x{width_of(problem)}") == ["convolution"]


@pytest.mark.parametrize("width", [32, 16])
@pytest.mark.parametrize("name", POOLED)
def test_windows_of_results(name: str, width: int) -> None:
    problem, pooling = POOLED[name]
    x = np.random.default_rng(0).standard_normal(problem.input).astype(np.float16)
    inputs = {"x": x, "r": np.zeros(problem.output, np.float16)}
    tactic = f"cuda_plane_tiles:{width}x{width_of(problem)}"
    module = check_on_threads(pooled_text(problem, pooling), inputs, tactic=tactic, tolerance=TOLERANCE["f16"])
    assert kernel_names(module) == ["convolution"]
    assert "kernel.mma" in {op.name for op in module.walk()}


@pytest.mark.parametrize("width", [32, 16])
@pytest.mark.parametrize("name", ADDED_UP)
def test_sums_of_tiles(name: str, width: int) -> None:
    problem, pooling = ADDED_UP[name]
    x = np.random.default_rng(0).standard_normal(problem.input).astype(np.float16)
    inputs = {"x": x, "r": np.zeros(problem.output, np.float16)}
    text, tactic = added_text(problem, pooling, width), f"cuda_plane_tiles:{width}x{width_of(problem)}"
    module = check_on_threads(text, inputs, tactic=tactic, tolerance=1e-4)
    assert kernel_names(module) == ["convolution"]


def test_windows_of_bfloat16() -> None:
    problem, pooling = POOLED["largest of 2 x 2"]
    x = np.random.default_rng(0).standard_normal(problem.input).astype(DTYPES["bf16"])
    inputs = {"x": x, "r": np.zeros(problem.output, DTYPES["bf16"])}
    text = pooled_text(problem, pooling, "bf16")
    check_on_threads(text, inputs, tactic="cuda_plane_tiles:32x32", tolerance=TOLERANCE["bf16"])


def test_sums_of_tiles_without_matrix_units() -> None:
    problem = Problem((1, 2, 5, 9), (2, 2, 3, 3), pre=(1,), post=(1,))
    x = np.random.default_rng(0).standard_normal(problem.input).astype(np.float16)
    inputs = {"x": x, "r": np.zeros(problem.output, np.float16)}
    check_on_threads(added_text(problem, "max [2, 2]", 32), inputs, tactic="generic", tolerance=1e-4)


def test_what_is_no_number_is_the_largest_of_its_windows() -> None:
    problem, pooling = POOLED["largest of 2 x 2"]
    x = np.ones(problem.input, np.float16)
    x[1, 3, 6, 20], x[2, :, 4, 5] = np.nan, np.inf
    module, context = parse_module(pooled_text(problem, pooling))
    lowered = lower_to_threads(module, context, "cuda_plane_tiles:32x32")
    inputs = {"x": x, "r": np.zeros(problem.output, np.float16)}
    with np.errstate(all="ignore"):
        (expected,) = interpret(parse_module(pooled_text(problem, pooling))[0], context, inputs).values()
        (found,) = run_plan(lowered, context, inputs).values()
    assert np.isnan(found[1]).any()
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_array_equal(np.isinf(found), np.isinf(expected))


@pytest.mark.parametrize("name", ["few channels", "several slabs"])
def test_floats_of_the_caller_are_rounded_as_they_are_read(name: str) -> None:
    problem, rng = PROBLEMS[name], np.random.default_rng(0)
    inputs = {
        "x": rng.standard_normal(problem.input).astype(np.float32),
        "r": rng.standard_normal(problem.output).astype(np.float16),
    }
    text = convolution_text(problem, "f16", "f32")
    check_on_threads(text, inputs, tactic=f"cuda_plane_tiles:32x{width_of(problem)}", tolerance=TOLERANCE["f16"])


@pytest.mark.parametrize("problem", [Problem((1, 3, 6, 40), (9, 3, 1, 3)), Problem((1, 8, 6, 40), (9, 8, 1, 3))])
def test_numbers_beside_a_window_are_none_of_it(problem: Problem) -> None:
    """Infinities spread as far as the windows that hold them: lines that no group needs are zeros."""
    x = np.ones(problem.input, np.float16)
    x[..., 20] = np.inf
    inputs = {"x": x, "r": np.zeros(problem.output, np.float16)}
    module, context = parse_module(convolution_text(problem, "f16"))
    lowered = lower_to_threads(module, context, "cuda_plane_tiles:32x16")
    with np.errstate(all="ignore"):
        (found,) = run_plan(lowered, context, inputs).values()
    meets = np.isin(np.arange(problem.output[-1]), range(18, 21))
    assert np.isfinite(found[..., ~meets]).all()


def test_rows_are_written_in_words() -> None:
    """Where rows are of even length a thread writes two pixels at once, or four."""
    for width, together in ((36, 2), (38, 4), (37, 1)):
        problem = Problem((1, 8, 9, width), (16, 8, 3, 3))
        module, context = parse_module(convolution_text(problem, "f16"))
        lowered = lower_to_threads(module, context, "cuda_plane_tiles:32x16")
        stores = [op for op in lowered.walk() if isinstance(op, StoreFragmentOp) and op.buffer.name_hint == "output"]
        assert {store.group(store.buffer) for store in stores} == {together}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    window, channels = pair(1, 4), data.draw(st.integers(1, 36))
    problem = Problem(
        (data.draw(st.integers(1, 2)), channels, *pair(8, 35)),
        (data.draw(st.integers(8, 70)), channels, *window),
        *(pair(1, 2), pair(1, 2), pair(0, 2), pair(0, 2)),
        residual=data.draw(st.booleans()),
    )
    assume(min(problem.output[2:]) > 0 and problem.output[0] * problem.output[2] * problem.output[3] >= 64)
    check(problem, "f16", f"{data.draw(st.sampled_from([32, 16]))}x{width_of(problem)}")
