"""Runs whose lengths grow by one: the results of an engine that knows no other length, and no program for each."""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from decoder_caches import CACHES, Feeds, Sizes, decoder_with, feeds_of
from lent import Lent

import mlirt
from mlirt.errors import DeadlineError, InvalidInputError, PlanError
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.growing_run import GrowingMemory, GrowingRun
from mlirt.runtime.plan_file import plan_bytes
from mlirt.runtime.shape_binding import ShapeBinder

Maker = Callable[[], Any]


def engine_of(parts: Any, **options: Any) -> Engine:
    """A tiny plan whose outputs are all written by kernels."""
    del parts.manifest["outputs"][1:]
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights), **options)


def random(rows: int) -> np.ndarray:
    return np.random.default_rng(rows).standard_normal((rows, 4), np.float32)


def expected(x: np.ndarray) -> np.ndarray:
    return np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(x.shape)


def is_growing(engine: Engine) -> bool:
    return isinstance(engine.context.short, GrowingRun)


def grown(engine: Engine, rows: int = 5) -> None:
    """Run until lengths have a run for all of them; the last one has `rows` + 3."""
    for more in range(4):
        engine.run({"x": random(rows + more)})
    assert is_growing(engine)


@pytest.fixture
def bound(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The shapes that have been bound since."""
    found: list[Any] = []
    bind = ShapeBinder.bind

    def counted(binder: ShapeBinder, shapes: Any, *others: Any, **named: Any) -> Any:
        found.append(shapes)
        return bind(binder, shapes, *others, **named)

    monkeypatch.setattr(ShapeBinder, "bind", counted)
    return found


def test_lengths_that_grow_are_not_bound_one_by_one(tiny: Maker, bound: list[Any]) -> None:
    engine = engine_of(tiny())
    for rows in range(5, 400):
        x = random(rows)
        np.testing.assert_allclose(engine.run({"x": x})["y"], expected(x), atol=1e-6)
    assert len(bound) <= 12
    assert engine.context.shape_cache.programs <= 8


def test_a_length_that_has_grown_once_has_a_program(tiny: Maker, bound: list[Any]) -> None:
    engine = engine_of(tiny())
    for rows in (5, 6, 5, 9, 5, 8, 5, 6):
        engine.run({"x": random(rows)})
    assert len(bound) == engine.context.shape_cache.programs == 4
    assert not is_growing(engine)


def test_lengths_that_jump_or_shrink_have_programs(tiny: Maker, bound: list[Any]) -> None:
    engine = engine_of(tiny())
    grown(engine)
    count = len(bound)
    for rows in (80, 60, 9, 10):
        x = random(rows)
        np.testing.assert_allclose(engine.run({"x": x})["y"], expected(x), atol=1e-6)
    assert len(bound) == count + 3
    assert is_growing(engine)


def test_another_length_uses_the_arena_in_between(tiny: Maker) -> None:
    """It gets a larger one, which the run of all lengths moves to."""
    engine = engine_of(tiny())
    grown(engine)
    for rows in (9, 5000, 9, 10, 11, 90000, 11, 12, 13):
        x = random(rows)
        np.testing.assert_allclose(engine.run({"x": x})["y"], expected(x), atol=1e-6)
    assert is_growing(engine)


def test_results_that_are_held_stay_as_they_are(tiny: Maker) -> None:
    engine = engine_of(tiny())
    held = [engine.run({"x": random(rows)})["y"] for rows in range(5, 60)]
    views = [engine.run({"x": random(rows)})["y"][1:] for rows in range(60, 90)]
    for rows, y in enumerate(held, 5):
        np.testing.assert_allclose(y, expected(random(rows)), atol=1e-6)
    for rows, y in enumerate(views, 60):
        np.testing.assert_allclose(y, expected(random(rows))[1:], atol=1e-6)


def test_memory_of_results_is_used_again_once_nobody_holds_it() -> None:
    memory = GrowingMemory(np.dtype(np.float32))
    addresses: set[int] = set()
    for rows in range(100, 120):
        array = memory.array((rows, 4), rows * 16)
        array[...] = rows
        addresses.add(memory.address)
        del array
    assert len(addresses) == 1
    first, second = memory.array((120,), 480), memory.array((120,), 480)
    assert first.base is not second.base
    third = memory.array((121,), 484)
    del second
    assert memory.array((121,), 484).base is not third.base


def test_outputs_are_written_where_the_caller_wants_them(tiny: Maker, bound: list[Any]) -> None:
    engine = engine_of(tiny())
    grown(engine)
    count = len(bound)
    for rows in range(9, 14):
        x, wide, other = random(rows), np.zeros((rows, 8), np.float32), np.zeros((rows, 4), np.float32)
        for into in (other, wide[:, :4], Lent(np.zeros_like(other))):
            got = engine.run({"x": x}, {"y": into})  # pyright: ignore[reportArgumentType]
            assert got["y"] is into
            written: Any = into
            np.testing.assert_allclose(np.from_dlpack(written), expected(x), atol=1e-6)
        shared = x.copy()
        assert engine.run({"x": shared}, {"y": shared})["y"] is shared
        np.testing.assert_allclose(shared, expected(x), atol=1e-6)
    assert len(bound) == count
    with pytest.raises(InvalidInputError, match="the engine has no output 'q'"):
        engine.run({"x": random(14)}, {"q": random(14)})
    with pytest.raises(InvalidInputError, match="expected an array of float32"):
        engine.run({"x": random(14)}, {"y": np.empty((15, 4), np.float32)})


def test_arrays_that_do_not_lie_as_kernels_need_them(tiny: Maker, bound: list[Any]) -> None:
    engine = engine_of(tiny())
    grown(engine)
    count = len(bound)
    for rows in range(9, 12):
        x = random(rows)
        wide, memory = np.repeat(x, 2, axis=1), np.zeros(x.nbytes + 1, np.uint8)
        unaligned = memory[1:].view(np.float32).reshape(x.shape)
        unaligned[...] = x
        for given in (wide[:, ::2], unaligned, Lent(x)):
            got = engine.run({"x": given})  # pyright: ignore[reportArgumentType]
            np.testing.assert_allclose(got["y"], expected(x), atol=1e-6)
    assert len(bound) == count


def test_runs_that_can_be_stopped_follow_lengths_too(tiny: Maker, bound: list[Any]) -> None:
    engine = engine_of(tiny())
    grown(engine)
    count = len(bound)
    for rows in range(9, 20):
        x = random(rows)
        np.testing.assert_allclose(engine.run({"x": x}, timeout=60)["y"], expected(x), atol=1e-6)
    with pytest.raises(DeadlineError):
        engine.run({"x": random(20)}, timeout=1e-9)
    np.testing.assert_allclose(engine.run({"x": random(20)})["y"], expected(random(20)), atol=1e-6)
    assert len(bound) == count


@pytest.mark.parametrize(
    ("x", "fault"),
    [
        (np.zeros((9, 5), np.float32), r"dimension 1 must be 4, not 5"),
        (np.zeros((9, 4, 1), np.float32), "expected 2 dimensions"),
        (np.zeros((9, 4), np.float64), "expected data type float32, got float64"),
        (np.zeros((9, 4), np.float32).tolist(), None),
    ],
)
def test_wrong_arrays_are_refused_as_ever(tiny: Maker, x: Any, fault: str | None) -> None:
    growing, fresh = engine_of(tiny()), engine_of(tiny())
    grown(growing)
    told: list[str] = []
    for engine in (growing, fresh):
        try:
            engine.run({"x": x})
        except InvalidInputError as error:
            told.append(str(error))
    assert told[:1] == told[1:]
    assert fault is None or fault in told[0]
    np.testing.assert_allclose(growing.run({"x": random(9)})["y"], expected(random(9)), atol=1e-6)
    with pytest.raises(InvalidInputError, match="input 'x' is missing"):
        growing.run({"y": random(9)})


def test_a_plan_that_would_leave_its_buffer_is_refused_at_that_length(tiny: Maker) -> None:
    parts = tiny()
    parts.manifest["launches"][0]["args"][1] = {"buffer": 1, "bytes": ["*", "n", ["*", "n", 2]]}
    engine = engine_of(parts)
    for rows in (5, 6, 7, 8):  # 16 n bytes
        engine.run({"x": random(rows)})
    assert is_growing(engine)
    with pytest.raises(PlanError, match="reaches beyond the 144 bytes of its buffer"):
        engine.run({"x": random(9)})
    np.testing.assert_allclose(engine.run({"x": random(8)})["y"], expected(random(8)), atol=1e-6)


def test_a_context_that_is_dropped_is_gone(tiny: Maker) -> None:
    engine = engine_of(tiny())
    grown(engine)
    gone = weakref.ref(engine.context)
    gc.disable()
    try:
        del engine
        assert gone() is None
    finally:
        gc.enable()


def _filled(cache: str, sizes: Sizes, length: int) -> Feeds:
    rng, feeds = np.random.default_rng(length), feeds_of(cache, sizes, length)
    for array in feeds.values():
        if array.dtype == np.float32:
            array[...] = rng.standard_normal(array.shape, np.float32)
    return feeds


@pytest.fixture(scope="module", params=CACHES)
def decoders(request: pytest.FixtureRequest) -> tuple[str, Sizes, Engine, Engine]:
    """A decoder of one kind of caches, once for lengths that grow and once with a program for each."""
    sizes = Sizes(layers=2, heads=2, key_heads=1, hidden=64, vocabulary=40)
    model = decoder_with(request.param, sizes)
    engines = [mlirt.compile(model, target="cpu", threads=2) for _ in range(2)]
    assert isinstance(engines[0], Engine)
    assert isinstance(engines[1], Engine)
    return request.param, sizes, engines[0], engines[1]


def test_decoders_write_what_programs_for_each_length_write(decoders: tuple[str, Sizes, Engine, Engine]) -> None:
    cache, sizes, engine, other = decoders
    for length in range(1, 150):
        feeds = _filled(cache, sizes, length)
        got = engine.run(feeds)
        other.context._last = other.context.short = None  # pyright: ignore[reportPrivateUsage]
        for name, want in other.run(feeds).items():
            np.testing.assert_array_equal(got[name], want)
    assert is_growing(engine)
    assert other.context.shape_cache.programs == 149
    assert engine.context.shape_cache.programs <= 8


def test_a_new_length_is_few_calls_however_many_launches_there_are() -> None:
    counts = [_calls(layers) for layers in (1, 4)]
    assert counts[0] == counts[1] <= 12


def _calls(layers: int) -> int:
    """The calls of Python functions by a run whose length has grown beyond those of the same once more: few of them."""
    sizes = Sizes(layers=layers, heads=2, key_heads=1, hidden=64, vocabulary=40)
    engine = mlirt.compile(decoder_with("concatenated", sizes), target="cpu", threads=1)
    for length in range(1, 40):
        engine.run(feeds_of("concatenated", sizes, length))
    counts: list[int] = []
    for _ in range(2):
        feeds, count = feeds_of("concatenated", sizes, 40), [0]

        def counted(frame: Any, event: str, argument: object, count: list[int] = count) -> None:
            count[0] += event == "call"

        sys.setprofile(counted)
        try:
            engine.run(feeds)
        finally:
            sys.setprofile(None)
        counts.append(count[0])
    return counts[0] - counts[1]
