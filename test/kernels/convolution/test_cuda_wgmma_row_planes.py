"""Convolutions of few channels by warpgroups whose results are planes of channels, against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, convolution_text
from gpu_kernels import check_on_threads
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from lowered_network import parse_module
from xdsl.dialects.builtin import ModuleOp

from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.kernel.fragment import StoreFragmentOp
from mlirt.passes.pipeline import run_passes


def check(problem: Problem, choice: str, element: str = "f16") -> ModuleOp:
    """Compare a convolution in one configuration."""
    rng = np.random.default_rng(0)
    shapes = {"x": problem.input, "r": problem.output}
    inputs = {name: rng.standard_normal(shape).astype(DTYPES[element]) for name, shape in shapes.items()}
    text = convolution_text(problem, element).replace("{stride", f'{{fused.tactic = "{choice}", stride', 1)
    return check_on_threads(text, inputs, tolerance=TOLERANCE[element])


def stores(module: ModuleOp) -> list[StoreFragmentOp]:
    """The stores of the product's kernel."""
    kernels = [one for one in module.body.block.ops if isinstance(one, FuncOp) and "convolution" in one.sym_name.data]
    found = [op for one in kernels for op in one.walk() if isinstance(op, StoreFragmentOp)]
    return [store for store in found if store.buffer.name_hint == "output"]


KINDS = {
    "whole pieces": (Problem((2, 3, 10, 10), (40, 3, 3, 3), residual=True), "64x32s3", 8),
    "words, a batch": (Problem((3, 3, 9, 8), (70, 3, 3, 3), residual=True), "64x32s3", 2),
    "padded": (Problem((2, 3, 8, 8), (20, 3, 3, 3), pre=(1,), post=(1,), residual=True), "64x64s3", 8),
    "folded strides": (Problem((1, 3, 16, 16), (16, 3, 7, 7), stride=(2,), pre=(3,), post=(3,)), "64x32s3", 8),
    "eight channels": (Problem((2, 8, 6, 10), (24, 8, 3, 3)), "64x32s3", 8),
    "three dimensions": (Problem((1, 3, 4, 6, 8), (9, 3, 2, 3, 3), pre=(0, 1, 1), post=(1, 1, 1)), "64x32s3", 8),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_kinds_of_convolutions(kind: str, element: str) -> None:
    problem, choice, together = KINDS[kind]
    module = check(problem, f"cuda_wgmma_row_planes:{choice}", element)
    assert {store.group(store.buffer) for store in stores(module)} == {together}


def test_odd_rows_are_written_as_runs_of_planes() -> None:
    """Where rows begin anywhere in a sector, planes do not: their runs are."""
    problem = Problem((32, 3, 130, 128), (64, 3, 3, 3))
    module, context = parse_module(convolution_text(problem, "f16"))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda tactic=cuda_wgmma_row_planes device=h200}")
    assert {store.group(store.buffer) for store in stores(module)} == {8}


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    window, sizes, channels = pair(1, 3), pair(6, 11), data.draw(st.integers(1, 5))
    problem = Problem(
        (data.draw(st.sampled_from([1, 2, 5])), channels, *sizes),
        (data.draw(st.integers(8, 70)), channels, *window),
        *(pair(1, 2), (1, 1), pair(0, 2), pair(0, 2)),
        residual=data.draw(st.booleans()),
    )
    batch, _, *lengths = problem.output
    assume(min(lengths) > 0 and batch * lengths[0] * lengths[1] >= 64 and lengths[0] * lengths[1] % 2 == 0)
    check(problem, data.draw(st.sampled_from([f"cuda_wgmma_row_planes:{tile}" for tile in ("64x32s3", "128x64s3")])))
