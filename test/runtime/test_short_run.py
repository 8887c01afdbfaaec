"""Short runs: no lock but the context's, nobody woken where the network is small, other cases left to `run` proper."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from lent import Lent

from mlirt.errors import InvalidInputError
from mlirt.runtime import cpu, worker_groups
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.plan_file import plan_bytes

Maker = Callable[[], Any]


def engine_of(parts: Any, **options: Any) -> Engine:
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights), **options)


def short_engine(parts: Any) -> Engine:
    """z lies in the arena: it would be copied, which a short run does not do."""
    del parts.manifest["outputs"][1:]
    return engine_of(parts, threads=2)


def the_long_way(program: cpu.CpuProgram, *_: Any) -> None:
    pytest.fail("a short run is one call")


def random(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).standard_normal((rows, 4), np.float32)


def expected(x: np.ndarray) -> np.ndarray:
    return np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)


def test_a_small_run_takes_no_group_and_wakes_nobody(tiny: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_groups, "_groups", {})
    engine = engine_of(tiny(), threads=2)
    for _ in range(10):
        engine.run({"x": random(5)})
    groups = engine.requests.groups
    assert groups is not None
    assert (groups.most_running, engine.requests.woken) == (0, 0)
    assert [pool for one in worker_groups._groups.values() for pool in one.pools] == []  # pyright: ignore[reportPrivateUsage]
    engine.run({"x": random(500)})
    assert engine.requests.groups is not None
    assert engine.requests.groups.most_running == 1


def test_runs_after_the_first_are_the_short_ones(tiny: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = short_engine(tiny())
    engine.run({"x": random(5)})
    monkeypatch.setattr(cpu.CpuProgram, "execute", the_long_way)
    x = random(5)
    for _ in range(3):
        got = engine.run({"x": x})
        np.testing.assert_allclose(got["y"], expected(x), atol=1e-6)
        x = x + 1
    assert engine.requests.contexts.most_running == 1  # that of the first run


def test_each_run_has_fresh_arrays(tiny: Maker) -> None:
    engine = engine_of(tiny())
    x = random(5)
    first = engine.run({"x": x})["y"]
    kept = first.copy()
    second = engine.run({"x": x + 1})["y"]
    np.testing.assert_array_equal(first, kept)
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("rows", [5, 5000])
def test_tensors_of_other_libraries_go_the_short_way(tiny: Maker, monkeypatch: pytest.MonkeyPatch, rows: int) -> None:
    """Demand 13: neither inputs nor outputs cost more than what it takes to ask for their memory."""
    engine = short_engine(tiny())
    engine.run({"x": random(rows)})
    monkeypatch.setattr(cpu.CpuProgram, "execute", the_long_way)
    feeds: Any = {"x": Lent(random(rows))}
    y = np.empty((rows, 4), np.float32)
    given: Any = {"y": Lent(y)}
    found = engine.run(feeds, given)
    assert found["y"] is given["y"]
    np.testing.assert_allclose(y, expected(random(rows)), atol=1e-6)
    np.testing.assert_allclose(engine.run(feeds)["y"], expected(random(rows)), atol=1e-6)


@pytest.mark.parametrize("x", [random(7), random(5).T.copy().T, random(5).tolist(), random(5)[::-1], random(5)[::2]])
def test_other_arrays_go_the_long_way_and_fit_all_the_same(tiny: Maker, x: Any) -> None:
    engine = short_engine(tiny())
    engine.run({"x": random(5)})
    value = np.asarray(x, np.float32) if isinstance(x, list) else x
    np.testing.assert_allclose(engine.run({"x": value})["y"], expected(value), atol=1e-6)


@pytest.mark.parametrize(
    ("feeds", "text"),
    [
        ({}, "input 'x' is missing"),
        ({"z": random(5)}, "input 'x' is missing"),
        ({"x": random(5), "z": random(5)}, "the engine has no input 'z'"),
        ({"x": random(5).astype(np.float64)}, "expected data type float32"),
        (5, "expected the inputs by name"),
        ([random(5)], "expected the inputs by name"),
    ],
)
def test_mistakes_are_named_as_in_a_first_run(tiny: Maker, feeds: Any, text: str) -> None:
    engine = short_engine(tiny())
    engine.run({"x": random(5)})
    with pytest.raises(InvalidInputError, match=text):
        engine.run(feeds)
    np.testing.assert_allclose(engine.run({"x": random(5)})["y"], expected(random(5)), atol=1e-6)


def test_outputs_into_arrays_of_the_caller(tiny: Maker) -> None:
    engine = engine_of(tiny())
    x = random(5)
    for y in (np.empty((5, 4), np.float32), np.empty((5, 8), np.float32)[:, ::2], x):
        want = expected(x)
        got = engine.run({"x": x}, {"y": y})
        assert got["y"] is y
        np.testing.assert_allclose(y, want, atol=1e-6)
        assert got["z"].shape == (8,)
    with pytest.raises(InvalidInputError, match="the engine has no output 'q'"):
        engine.run({"x": x}, {"q": x})
    with pytest.raises(InvalidInputError, match="expected an array of float32"):
        engine.run({"x": x}, {"y": np.empty((5, 4))})


def test_shapes_by_turns_in_one_arena(tiny: Maker) -> None:
    engine = engine_of(tiny())
    for rows in (5, 9, 5, 2000, 5, 9):
        for _ in range(2):
            np.testing.assert_allclose(engine.run({"x": random(rows)})["y"], expected(random(rows)), atol=1e-6)


def test_shapes_that_come_again_have_their_short_run_again(tiny: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[object] = []
    cut = cpu.CpuProgram.short_cut

    def counted(program: cpu.CpuProgram) -> object:
        made.append(program)
        return cut(program)

    monkeypatch.setattr(cpu.CpuProgram, "short_cut", counted)
    engine = engine_of(tiny())
    for rows in (5, 9, 5, 9, 5, 9):
        engine.run({"x": random(rows)})
    assert len(made) == 2


def test_shapes_by_turns_are_one_call_each(tiny: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = short_engine(tiny())
    shapes = (5, 9, 7, 11)
    for rows in shapes:
        engine.run({"x": random(rows)})
    monkeypatch.setattr(cpu.CpuProgram, "execute", the_long_way)
    monkeypatch.setattr(cpu.CpuProgram, "upload", the_long_way)
    for rows in shapes * 3:
        into = np.empty((rows, 4), np.float32)
        got = engine.run({"x": random(rows)}, {"y": into})
        assert got["y"] is into
        np.testing.assert_array_equal(engine.run({"x": random(rows)})["y"], into)
        np.testing.assert_allclose(into, expected(random(rows)), atol=1e-6)


def test_shapes_by_turns_are_used_as_recently_as_they_ran(tiny: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that what is evicted is what has not run for the longest time, be its runs short ones."""
    engine = short_engine(tiny())
    for rows in (5, 9, 7):
        engine.run({"x": random(rows)})
    for rows in (9, 5):  # short runs: now 7 is the least recently used
        engine.run({"x": random(rows)})
    programs = engine.context._programs  # pyright: ignore[reportPrivateUsage]
    monkeypatch.setattr(programs, "_limit", engine.context.shape_cache.bytes)
    bound: list[Any] = []
    prepare = cpu.CpuSession.prepare

    def counted(session: cpu.CpuSession, binding: Any, **options: Any) -> Any:
        bound.append(binding.input_shapes)
        return prepare(session, binding, **options)

    monkeypatch.setattr(cpu.CpuSession, "prepare", counted)
    for rows in (3, 5, 9):
        engine.run({"x": random(rows)})
    assert bound == [((3, 4),)]
    engine.run({"x": random(7)})
    assert bound == [((3, 4),), ((7, 4),)]


def test_short_runs_do_not_keep_their_context(tiny: Maker) -> None:
    engine = short_engine(tiny())
    for rows in (5, 9, 5):
        engine.run({"x": random(rows)})
    context = weakref.ref(engine.context)
    gc.disable()
    try:
        del engine
        assert context() is None
    finally:
        gc.enable()
