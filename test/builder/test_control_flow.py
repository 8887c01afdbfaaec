"""Branches and loops run on the CPU without a step of Python, whatever the data make of them."""

from __future__ import annotations

import numpy as np
import pytest
from onnx_control_flow import (
    CONVOLUTIONS,
    NESTED,
    SQUEEZED,
    SUM_EVEN,
    UNEQUAL_BRANCHES,
    UNTIL_LARGE,
    check_on_cpu,
    model,
    scan_model,
)
from onnx_models import numbers, run_onnxruntime

from mlirt.builder.build import build_plan
from mlirt.builder.compile import compile
from mlirt.dialects.context import RtContext
from mlirt.errors import InvalidInputError
from mlirt.frontend.onnx.importer import import_model


def test_a_branch_in_a_loop() -> None:
    """tensorrt-features.md#7.14, tensorrt-features.md#8.8: the guide's example, read from ONNX."""
    items = numbers(9)
    check_on_cpu(model(SUM_EVEN), *({"items": items, "count": np.array(n)} for n in (9, 0, 1, 4)))


def test_a_loop_that_ends_when_its_data_say_so() -> None:
    """Its trip count, and with it the length of what it collects, differs from run to run."""
    x = np.array([0.5, 1.0, 0.25], np.float32)
    limits = (1.5, 100.0, 3.0, 1000.0)
    check_on_cpu(model(UNTIL_LARGE), *({"x": x, "limit": np.array(limit, np.float32)} for limit in limits))


def test_branches_of_different_shapes() -> None:
    """tensorrt-features.md#8.3 and 8.12."""
    feeds = [{"c": np.array(c), "x": numbers(n, 4)} for c in (True, False) for n in (3, 1, 5)]
    check_on_cpu(model(UNEQUAL_BRANCHES), *feeds)


def test_a_loop_in_a_loop() -> None:
    iterations = [(2, 3), (0, 2), (3, 0), (1, 1)]
    feeds = [{"x": numbers(2), "outer": np.array(i), "inner": np.array(j)} for i, j in iterations]
    check_on_cpu(model(NESTED), *feeds)


@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (-1, -1), (1, 0)])
@pytest.mark.parametrize("directions", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_scan(axes: tuple[int, int], directions: tuple[int, int]) -> None:
    """tensorrt-features.md#7.21; the recurrent layers of ONNX are in test/frontend/onnx/test_ops_recurrent.py."""
    made = scan_model(axes, directions, (3, 4))
    check_on_cpu(made, {"start": numbers(3 if axes[0] % 2 else 4), "x": numbers(3, 4, seed=1)})


def test_layouts_across_the_border_of_a_branch() -> None:
    """The weights are constants, so that the convolutions work on blocked tensors in and around the branch."""
    made = model(CONVOLUTIONS)
    w, x = numbers(16, 16, 3, 3) * np.float32(0.1), numbers(1, 16, 8, 8, seed=1)
    engine = compile(made, "cpu", constants={"w": w})
    for condition in (True, False):
        (want,) = run_onnxruntime(made, {"c": np.array(condition), "x": x, "w": w})
        got = engine.run({"c": np.array(condition), "x": x})["y"]
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def test_the_size_of_another_run_is_no_burden() -> None:
    """A run that makes more iterations than the one before is made again, and the next one is not."""
    engine = compile(model(UNTIL_LARGE), "cpu")
    x = np.array([0.5, 1.0, 0.25], np.float32)
    for limit, rows in ((4.0, 2), (4.0, 2), (64.0, 6)):
        assert engine.run({"x": x, "limit": np.array(limit, np.float32)})["rows"].shape == (rows, 3)


def test_a_part_beyond_the_end_is_an_error() -> None:
    text = SUM_EVEN.replace("Gather (items, i)", "Identity (zero)").replace(
        "two = Constant <value = int64 {2}> ()",
        "two = Constant <value = int64 {2}> () at = Constant <value = int64[1] {0}> () start = Unsqueeze (i, at) "
        "one = Constant <value = int64[1] {1}> () end = Add (start, one) part = Slice (items, start, end) "
        "few = Squeeze (part, at)",
    )
    text = text.replace("taken = Add (sum_in, item)", "more = Add (item, few) taken = Add (sum_in, more)")
    engine = compile(model(text), "cpu")
    assert engine.run({"items": np.ones(4, np.float32), "count": np.array(4)})["total"] == 2
    with pytest.raises(InvalidInputError, match=r"Slice .*: a part reaches beyond the end of axis 0"):
        engine.run({"items": np.ones(4, np.float32), "count": np.array(5)})


def test_a_branch_that_changes_the_rank_is_settled_by_what_follows() -> None:
    """Only one side makes a network; inputs that take the other one are refused."""
    made = model(SQUEEZED)
    check_on_cpu(made, {"x": numbers(3, 1, 4)}, {"x": numbers(2, 1, 4)})
    with pytest.raises(InvalidInputError, match=r"Squeeze_1: .* 24 elements became 12"):
        compile(made, "cpu").run({"x": numbers(3, 2, 4)})


def test_a_side_that_makes_no_sense_is_refused_where_it_is_taken() -> None:
    text = UNEQUAL_BRANCHES.replace(
        "whole = Neg (x)", "five = Constant <value = float[5] {0.0}> () whole = Add (x, five)"
    )
    engine = compile(model(text.replace("{0.0}", "{0.0, 0.0, 0.0, 0.0, 0.0}")), "cpu")
    assert engine.run({"c": np.array(False), "x": numbers(3, 4)})["y"].shape == (1, 4)
    with pytest.raises(InvalidInputError, match=r"Add .*"):
        engine.run({"c": np.array(True), "x": numbers(3, 4)})


def test_plans_for_gpus_have_the_kernel_that_decides() -> None:
    ctx = RtContext()
    plan = build_plan(import_model(model(SUM_EVEN), ctx), ctx, "cuda")
    assert sorted(plan.manifest.conditions) == ["sm_80", "sm_90a"]
    assert all(bytes(plan.sections[section])[:4] == b"\x7fELF" for section in plan.manifest.conditions.values())
