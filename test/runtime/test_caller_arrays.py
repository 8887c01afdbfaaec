"""Where kernels read and write: the caller's arrays where they fit, counted by what is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirt.runtime.caller_arrays import OutputPlace, separate, stage
from mlirt.runtime.engine import load
from mlirt.runtime.host_memory import aligned_empty
from mlirt.runtime.plan_file import plan_bytes

_FLOAT = np.dtype(np.float32)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[np.ndarray]:
    """The arrays that kernels wrote the output into, run by run."""
    found: list[np.ndarray] = []
    begin = OutputPlace.begin

    def recorded(place: OutputPlace, given: np.ndarray | None) -> None:
        begin(place, given)
        found.append(place.array)

    monkeypatch.setattr(OutputPlace, "begin", recorded)
    return found


@pytest.mark.parametrize("timeout", [None, 60.0])  # a short run, and the long way
def test_a_fitting_output_is_written_where_it_belongs(
    tiny: Callable[[], Any], written: list[np.ndarray], timeout: float | None
) -> None:
    parts = tiny()
    parts.manifest["buffers"][0]["align"] = parts.manifest["buffers"][2]["align"] = 4
    del parts.manifest["outputs"][1:]
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    x = np.random.default_rng(0).standard_normal((1000, 4), np.float32)
    want = engine.run({"x": x})["y"]
    for y in (aligned_empty((1000, 4), _FLOAT), np.empty((1000, 4), np.float32)):
        assert engine.run({"x": x}, {"y": y}, timeout=timeout)["y"] is y
        np.testing.assert_array_equal(y, want)
        assert written[-1] is y
    for y in (np.empty((4, 1000), np.float32).T, x):
        assert engine.run({"x": x}, {"y": y}, timeout=timeout)["y"] is y
        np.testing.assert_array_equal(y, want)
        assert not np.shares_memory(written[-1], y)


def test_a_later_run_does_not_write_into_an_array_given_before(tiny: Callable[[], Any]) -> None:
    parts = tiny()
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    x, y = np.ones((1000, 4), np.float32), np.empty((1000, 4), np.float32)
    engine.run({"x": x}, {"y": y})
    kept = y.copy()
    engine.run({"x": x + 1})
    np.testing.assert_array_equal(y, kept)


def test_arrays_that_share_memory_are_not_written_early() -> None:
    whole, other, x = np.empty(8), np.empty(4), np.empty(4)
    given: dict[int, np.ndarray] = {0: whole[:5], 1: whole[4:], 2: other}
    assert set(separate(given, [x])) == {2}
    given = {0: x, 1: other}
    assert set(separate(given, [x])) == {1}


@pytest.mark.parametrize(("shape", "is_staged"), [((), True), ((0, 5), True), ((512,), True), ((513,), False)])
def test_small_arrays_are_staged(shape: tuple[int, ...], is_staged: bool) -> None:
    assert (stage(shape, _FLOAT) is not None) == is_staged


@pytest.mark.parametrize("timeout", [None, 60.0])
def test_memory_of_outputs_that_nobody_holds_is_used_again(
    tiny: Callable[[], Any], written: list[np.ndarray], timeout: float | None
) -> None:
    parts = tiny()
    del parts.manifest["outputs"][1:]
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    x, places = np.ones((1000, 4), np.float32), set[int]()
    for _ in range(10):
        engine.run({"x": x}, timeout=timeout)
        places.add(written.pop().ctypes.data)
    assert len(places) == 1
    first, second = engine.run({"x": x}), engine.run({"x": x})
    assert not np.shares_memory(first["y"], second["y"])
