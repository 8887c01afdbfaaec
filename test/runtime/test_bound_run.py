"""Bound runs: arrays are checked once, kernels read and write them where they lie, a call uploads nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest

from mlirt.errors import DeadlineError, InvalidInputError
from mlirt.runtime import cpu
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.host_memory import aligned_empty
from mlirt.runtime.plan_file import plan_bytes

Maker = Callable[[], Any]
_FLOAT = np.dtype(np.float32)


def engine_of(parts: Any, **options: Any) -> Engine:
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights), **options)


def expected(x: np.ndarray) -> np.ndarray:
    return np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)


def points_anew(program: cpu.CpuProgram, inputs: object) -> None:
    pytest.fail("a call uses the arrays that it has")


@pytest.fixture(params=[5, 2000])
def rows(request: pytest.FixtureRequest) -> int:
    return request.param


def test_calls_read_and_write_the_same_arrays(tiny: Maker, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = engine_of(tiny(), threads=2)
    x, y = aligned_empty((rows, 4), _FLOAT), aligned_empty((rows, 4), _FLOAT)
    bound = engine.bind({"x": x}, {"y": y})
    monkeypatch.setattr(cpu.CpuProgram, "upload", points_anew)
    for number in range(3):
        x[...] = np.random.default_rng(number).standard_normal(x.shape)
        got = bound()
        assert got["y"] is y
        np.testing.assert_allclose(y, expected(x), atol=1e-6)
        np.testing.assert_array_equal(got["z"], np.arange(8) + 0.5)
        assert bound.outputs is got


def test_nothing_is_copied_where_arrays_fit(tiny: Maker, rows: int) -> None:
    parts = tiny()
    del parts.manifest["outputs"][1:]
    bound = engine_of(parts).bind({"x": aligned_empty((rows, 4), _FLOAT)}, {"y": aligned_empty((rows, 4), _FLOAT)})
    assert bound.copies == 0


def test_arrays_that_kernels_cannot_use_are_copied_in_each_call(tiny: Maker, rows: int) -> None:
    parts = tiny()
    del parts.manifest["outputs"][1:]
    engine = engine_of(parts)
    x, y = np.zeros((rows, 8), np.float32)[:, ::2], np.zeros((4, rows), np.float32).T
    bound = engine.bind({"x": x}, {"y": y})
    assert bound.copies == 2
    for number in range(2):
        x[...] = number
        bound()
        np.testing.assert_allclose(y, expected(x), atol=1e-6)


def test_an_output_may_be_the_input(tiny: Maker, rows: int) -> None:
    x = aligned_empty((rows, 4), _FLOAT)
    bound = engine_of(tiny()).bind({"x": x}, {"y": x})
    for _ in range(2):
        x[...] = np.arange(4)
        want = expected(x)
        bound()
        np.testing.assert_allclose(x, want, atol=1e-6)


def test_two_bound_runs_and_runs_of_their_context_share_an_arena(tiny: Maker) -> None:
    context = engine_of(tiny()).create_execution_context()
    small, large = np.ones((5, 4), np.float32), np.ones((3000, 4), np.float32)
    first, second = context.bind({"x": small}), context.bind({"x": large})
    for _ in range(2):
        np.testing.assert_allclose(first()["y"], expected(small), atol=1e-6)
        np.testing.assert_allclose(second()["y"], expected(large), atol=1e-6)
        np.testing.assert_allclose(context.run({"x": small + 1})["y"], expected(small + 1), atol=1e-6)


@pytest.mark.parametrize("guard", ["start", "end"])
def test_between_guard_pages(tiny: Maker, guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_GUARD", guard)
    x, y = np.ones((5, 4), np.float32), np.empty((5, 4), np.float32)
    bound = engine_of(tiny()).bind({"x": x}, {"y": y})
    for _ in range(2):
        x += 1
        bound()
        np.testing.assert_allclose(y, expected(x), atol=1e-6)


def test_arrays_that_do_not_fit(tiny: Maker) -> None:
    engine = engine_of(tiny())
    x = np.ones((5, 4), np.float32)
    with pytest.raises(InvalidInputError, match="expected a NumPy array to bind, got list"):
        engine.bind({"x": cast("Any", x.tolist())})
    with pytest.raises(InvalidInputError, match="input 'x' is missing"):
        engine.bind({})
    with pytest.raises(InvalidInputError, match=r"output 'y': expected an array of float32 and shape \(5, 4\)"):
        engine.bind({"x": x}, {"y": np.empty((4, 4), np.float32)})
    with pytest.raises(InvalidInputError, match="the engine has no output 'q'"):
        engine.bind({"x": x}, {"q": x})


def test_a_timeout(tiny: Maker) -> None:
    x = np.ones((5, 4), np.float32)
    bound = engine_of(tiny()).bind({"x": x})
    np.testing.assert_allclose(bound(timeout=60)["y"], expected(x), atol=1e-6)
    with pytest.raises(DeadlineError, match="within its timeout of 0 s"):
        bound(timeout=0)
    np.testing.assert_allclose(bound()["y"], expected(x), atol=1e-6)
