"""Decisions of the host between graphs of launches, on a driver that keeps device memory on the host."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, Maker, cuda_plan

from mlirt.errors import InvalidInputError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice

SIGN_AND_EXPONENT = {"buffer": 0, "offset": 3}


def run(tiny: Maker, program: list[Any], first: float, **more: Any) -> tuple[FakeDriver, dict[str, np.ndarray]]:
    def change(manifest: dict[str, Any]) -> None:
        manifest |= {"program": program, **more}
        manifest["buffers"][1] |= {"first": 0, "last": 2}
        manifest["buffers"][4] |= {"first": 0, "last": 3}

    driver = FakeDriver()
    plan = cuda_plan(tiny, change)
    context = ExecutionContext(plan.manifest, CudaDevice(plan, driver).session())
    return driver, context.run({"x": np.full((2, 4), first, np.float32)})


def test_a_branch(tiny: Maker) -> None:
    program = [{"if": SIGN_AND_EXPONENT, "then": [0, 1], "else": []}, 2]
    for first, graphs in ((1.0, 2), (0.0, 1)):
        driver, _ = run(tiny, program, first)
        assert driver.replays.total() == graphs


def test_a_loop_that_never_starts(tiny: Maker) -> None:
    program = [{"while": SIGN_AND_EXPONENT, "before": [0], "body": [1]}, 2]
    driver, _ = run(tiny, program, 0.0)
    assert driver.replays.total() == 2


def test_a_size_is_found_and_the_run_made_again(tiny: Maker) -> None:
    """The word is the bits of two numbers: not what the size is taken for at first."""
    program = [0, 1, {"size": "s", "word": {"buffer": 0}}, 2]
    driver, _ = run(tiny, program, 1.0, sizes=["s"])
    assert driver.replays.total() == 3


def test_a_requirement(tiny: Maker) -> None:
    program = [{"require": SIGN_AND_EXPONENT, "message": "x is 0"}, 0, 1, 2]
    assert run(tiny, program, 1.0)[1]["y"].shape == (2, 4)
    with pytest.raises(InvalidInputError, match="x is 0"):
        run(tiny, program, 0.0)


def test_a_program_with_decisions_can_be_profiled(tiny: Maker) -> None:
    def change(manifest: dict[str, Any]) -> None:
        manifest["program"] = [{"if": SIGN_AND_EXPONENT, "then": [0], "else": []}, 1, 2]

    plan = cuda_plan(tiny, change)
    context = ExecutionContext(plan.manifest, CudaDevice(plan, FakeDriver()).session())
    assert [ms for _, ms in context.profile({"x": np.ones((2, 4), np.float32)})] == [1.0, 1.0, 1.0]
    assert [ms for _, ms in context.profile({"x": np.zeros((2, 4), np.float32)})] == [0.0, 1.0, 1.0]


def length(relation: str, left: object, right: object) -> dict[str, object]:
    """A requirement on lengths of the layer `join`."""
    fault = "lengths {left} and {right}"
    return {"layer": "join", "relation": relation, "left": left, "right": right, "where": 1, "fault": fault}


def test_lengths_that_agree_are_no_step_and_others_end_the_run(tiny: Maker) -> None:
    """The rows of the input are 2: one plan compares them with 2, the other with 3, in a branch that a run takes."""
    driver, found = run(tiny, [0, length("equal", "n", 2), 1, 2], 1.0)
    assert found["y"].shape == (2, 4)
    assert driver.replays.total() == 1
    other = length("equal", "n", 3)
    program = [{"if": SIGN_AND_EXPONENT, "then": [0, other, 1], "else": []}, 2]
    assert run(tiny, program, 0.0)[1]["y"].shape == (2, 4)
    message = r"layer join: lengths 2 and 3 \(n\); give inputs"
    with pytest.raises(InvalidInputError, match=message):
        run(tiny, program, 1.0)


def test_a_length_that_is_repeated_ends_no_run(tiny: Maker) -> None:
    """The rows of the input are 2; a length of 1 is repeated beside them, one of 3 is not."""
    step = length("equal_or_one", 1, "n")
    assert run(tiny, [0, step, 1, 2], 1.0)[1]["y"].shape == (2, 4)
    with pytest.raises(InvalidInputError, match=r"layer join: lengths 3 and 2 \(n\)"):
        run(tiny, [0, step | {"left": 3}, 1, 2], 1.0)


def test_lengths_are_compared_when_their_sizes_are_known(tiny: Maker) -> None:
    """The size is taken for 1 at first, which is no length that agrees with 2; the bits of two numbers are another."""
    told = {"size": "s", "word": {"buffer": 0}}
    right = int(np.ones(2, np.float32).view(np.int64)[0])
    program = [0, 1, told, length("equal", "s", right), 2]
    assert run(tiny, program, 1.0, sizes=["s"])[1]["y"].shape == (2, 4)
    program = [0, 1, told, length("equal", "s", ["//", "s", 2]), 2]
    with pytest.raises(InvalidInputError, match=r"layer join: .* \(s and s//2\)"):
        run(tiny, program, 1.0, sizes=["s"])
