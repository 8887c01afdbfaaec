"""Programs of shapes are kept by bytes: entries and bytes are counted, never times."""

import gc
import pickle
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirt.errors import InvalidInputError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cpu import CpuSession
from mlirt.runtime.engine import Engine, load
from mlirt.runtime.plan_file import plan_bytes
from mlirt.runtime.program_cache import shape_cache_bytes
from mlirt.runtime.shape_binding import ShapeBinding

Maker = Callable[[], Any]


def engine_of(parts: Any, shape_cache_mb: float | None = None) -> Engine:
    return load(plan_bytes(parts.manifest, parts.sections, parts.weights), shape_cache_mb=shape_cache_mb)


@pytest.fixture
def prepared(monkeypatch: pytest.MonkeyPatch) -> list[ShapeBinding]:
    """The bindings that programs were made for since."""
    found: list[ShapeBinding] = []
    prepare = CpuSession.prepare

    def counted(session: CpuSession, binding: ShapeBinding) -> Any:
        found.append(binding)
        return prepare(session, binding)

    monkeypatch.setattr(CpuSession, "prepare", counted)
    return found


def run(context: ExecutionContext | Engine, n: int) -> None:
    x = np.random.default_rng(n).standard_normal((n, 4), np.float32)
    expected = np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(n, 4)
    np.testing.assert_allclose(context.run({"x": x})["y"], expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("count", [4, 5, 64, 1000])
def test_shapes_by_turns_are_bound_once_each(tiny: Maker, prepared: list[ShapeBinding], count: int) -> None:
    context = engine_of(tiny()).context
    for _ in range(2):
        for n in range(1, count + 1):
            run(context, n)
    assert len(prepared) == count
    assert context.shape_cache.programs == count
    assert 0 < context.shape_cache.bytes <= context.shape_cache.limit == 64 << 20


def test_the_least_recently_used_program_goes_first(tiny: Maker, prepared: list[ShapeBinding]) -> None:
    context = engine_of(tiny(), shape_cache_mb=1).context
    run(context, 1)
    many = context.shape_cache.limit // context.shape_cache.bytes * 2
    for n in range(2, many):
        run(context, 1)
        run(context, n)
    use = context.shape_cache
    assert 1 < use.programs < many
    assert use.bytes <= use.limit == 1 << 20
    before = len(prepared)
    run(context, 1)
    run(context, many - 1)
    assert len(prepared) == before
    run(context, 2)
    assert len(prepared) == before + 1


def test_no_bytes_keep_the_last_program_alone(tiny: Maker, prepared: list[ShapeBinding]) -> None:
    context = engine_of(tiny(), shape_cache_mb=0).context
    for n in (1, 1, 2, 2, 1):
        run(context, n)
    assert [binding.values["n"] for binding in prepared] == [1, 2, 1]
    assert context.shape_cache.programs == 1


def test_about_the_bytes_that_programs_take_are_counted(tiny: Maker) -> None:
    context = engine_of(tiny()).context
    for n in range(1, 5):
        run(context, n)
    gc.collect()
    counted = context.shape_cache.bytes
    tracemalloc.start()
    try:
        for n in range(5, 105):
            run(context, n)
        gc.collect()
        taken = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert 0.6 * taken <= context.shape_cache.bytes - counted <= 1.6 * taken


def test_outputs_count(tiny: Maker) -> None:
    context = engine_of(tiny(), shape_cache_mb=1).context
    run(context, 1 << 17)
    assert context.shape_cache.bytes > (1 << 17) * 16
    run(context, 1)
    assert context.shape_cache.programs == 1


def test_older_programs_move_to_a_larger_arena(tiny: Maker) -> None:
    context = engine_of(tiny()).context
    for n in (1, 100, 1, 10_000, 100, 1, 10_000):
        run(context, n)
    assert context.shape_cache.programs == 3


def test_the_limit_of_an_environment_and_of_a_pickled_engine(tiny: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MLIRT_SHAPE_CACHE_MB", "3")
    assert engine_of(tiny()).context.shape_cache.limit == 3 << 20
    chosen = engine_of(tiny(), shape_cache_mb=2)
    assert chosen.context.shape_cache.limit == 2 << 20
    again: Engine = pickle.loads(pickle.dumps(chosen))
    assert again.context.shape_cache.limit == 2 << 20


@pytest.mark.parametrize("wanted", [-1.0, float("nan"), float("inf")])
def test_no_number_of_bytes(wanted: float, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidInputError, match="shape_cache_mb"):
        shape_cache_bytes(wanted)
    monkeypatch.setenv("MLIRT_SHAPE_CACHE_MB", str(wanted))
    with pytest.raises(InvalidInputError, match="MLIRT_SHAPE_CACHE_MB"):
        shape_cache_bytes()
