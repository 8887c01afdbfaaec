"""Where kernels read and write: the caller's arrays where they fit, counted by what is copied."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirt.runtime import output_arrays
from mlirt.runtime.caller_arrays import separate, stage
from mlirt.runtime.engine import load
from mlirt.runtime.host_memory import aligned_empty
from mlirt.runtime.plan_file import plan_bytes

_FLOAT = np.dtype(np.float32)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The shapes of outputs that were copied after a run."""
    found: list[tuple[int, ...]] = []

    class Counting:
        """NumPy with a counter."""

        ndarray = np.ndarray

        @staticmethod
        def copyto(target: np.ndarray, source: np.ndarray) -> None:
            found.append(target.shape)
            np.copyto(target, source)

    monkeypatch.setattr(output_arrays, "np", Counting)
    return found


def test_a_fitting_output_is_written_where_it_belongs(
    tiny: Callable[[], Any], copies: list[tuple[int, ...]]
) -> None:
    parts = tiny()
    parts.manifest["buffers"][0]["align"] = parts.manifest["buffers"][2]["align"] = 4
    del parts.manifest["outputs"][1:]
    engine = load(plan_bytes(parts.manifest, parts.sections, parts.weights))
    x = np.random.default_rng(0).standard_normal((1000, 4), np.float32)
    want = engine.run({"x": x})["y"]
    for y in (aligned_empty((1000, 4), _FLOAT), np.empty((1000, 4), np.float32)):
        assert engine.run({"x": x}, {"y": y})["y"] is y
        np.testing.assert_array_equal(y, want)
    assert copies == []
    y = np.empty((4, 1000), np.float32).T
    engine.run({"x": x}, {"y": y})
    np.testing.assert_array_equal(y, want)
    engine.run({"x": x}, {"y": x})
    np.testing.assert_array_equal(x, want)
    assert copies == [(1000, 4), (1000, 4)]


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
    assert set(separate({0: whole[:5], 1: whole[4:], 2: other}, [x])) == {2}
    assert set(separate({0: x, 1: other}, [x])) == {1}


@pytest.mark.parametrize(("shape", "is_staged"), [((), True), ((0, 5), True), ((512,), True), ((513,), False)])
def test_small_arrays_are_staged(shape: tuple[int, ...], is_staged: bool) -> None:
    assert (stage(shape, _FLOAT) is not None) == is_staged
