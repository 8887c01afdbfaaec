"""Convolutions by warpgroups whose results are planes of channels, against the reference, without races."""

from __future__ import annotations

import numpy as np
import pytest
from contractions import DTYPES, TOLERANCE, Problem, planes_text
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
    text = planes_text(problem, element).replace("{stride", f'{{fused.tactic = "{choice}", stride', 1)
    return check_on_threads(text, inputs, tolerance=TOLERANCE[element])


def stores(module: ModuleOp) -> list[StoreFragmentOp]:
    """The stores of the product's kernel."""
    kernels = [one for one in module.body.block.ops if isinstance(one, FuncOp) and "convolution" in one.sym_name.data]
    return [op for one in kernels for op in one.walk() if isinstance(op, StoreFragmentOp)]


KINDS = {
    "whole pieces": (Problem((2, 64, 8, 8), (72, 64, 3, 3), pre=(1,), post=(1,), residual=True), "64x64s3", 8),
    "half of a piece": (Problem((2, 64, 6, 6), (40, 64, 3, 3), pre=(1,), post=(1,), residual=True), "64x64s3", 4),
    "pairs, batch 5": (Problem((5, 16, 9, 8), (70, 16, 3, 3), pre=(1,), post=(0, 1), residual=True), "128x32s3", 8),
    "words": (Problem((2, 24, 7, 6), (9, 24, 1, 1)), "64x32s3", 2),
    "pixels as columns": (Problem((3, 64, 4, 10), (64, 64, 1, 1), residual=True), "64x64s3t", 8),
    "shared sums": (Problem((2, 72, 9, 8), (40, 72, 3, 3), stride=(2,), pre=(1,), post=(1,)), "64x64s3c2", 4),
    "one dimension": (Problem((2, 8, 30), (10, 8, 5), dilation=(2,), pre=(4,), post=(4,)), "64x32s3", 2),
    "three dimensions": (Problem((1, 8, 5, 6, 8), (9, 8, 2, 3, 2), pre=(0, 1, 1), post=(1, 1, 0)), "64x32s3", 8),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_kinds_of_convolutions(kind: str, element: str) -> None:
    problem, choice, together = KINDS[kind]
    module = check(problem, f"cuda_wgmma_planes:{choice}", element)
    found = [store for store in stores(module) if store.buffer.name_hint == "output"]
    assert found
    assert {store.group(store.buffer) for store in found} == {together}


def test_without_a_choice_planes_are_rows() -> None:
    """Of the tactics of warpgroups the one that writes whole runs is taken for large planes."""
    problem = Problem((8, 64, 66, 66), (128, 64, 3, 3))
    module, context = parse_module(planes_text(problem, "f16"))
    run_passes(module, context, "convert-fused-to-kernel{target=cuda device=h200}")
    assert {store.group(store.buffer) for store in stores(module)} == {8}


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_any_window(data: st.DataObject) -> None:
    def pair(low: int, high: int) -> tuple[int, int]:
        return data.draw(st.tuples(st.integers(low, high), st.integers(low, high)))

    window, sizes, channels = pair(1, 3), pair(4, 9), 8 * data.draw(st.integers(1, 10))
    problem = Problem(
        (data.draw(st.sampled_from([1, 2, 5])), channels, *sizes),
        (data.draw(st.integers(8, 70)), channels, *window),
        *(pair(1, 2), pair(1, 2), pair(0, 2), pair(0, 2)),
        residual=data.draw(st.booleans()),
    )
    batch, _, *lengths = problem.output
    assume(min(lengths) > 0 and batch * lengths[0] * lengths[1] > 4 and lengths[0] * lengths[1] % 2 == 0)
    check(problem, data.draw(st.sampled_from([f"cuda_wgmma_planes:{tile}" for tile in ("64x32s3", "128x64s3")])))
