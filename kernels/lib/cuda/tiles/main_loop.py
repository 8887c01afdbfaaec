"""Software pipelining of a product's loop over its depth: while one stage is multiplied, the next ones are copied."""

from __future__ import annotations

from collections.abc import Sequence

from mlirt.kernels.lib.cuda.tiles.engines import Engine
from mlirt.kernels.lib.cuda.tiles.loaders import Loader
from mlirt.kernels.lib.language import Index, Value, kernel, value_of
from mlirt.kernels.lib.language.simt_words import commit_copies, sync_threads, wait_for_copies


def sum_of_products(engine: Engine, left: Loader, right: Loader, first: Value, steps: Value, stages: int) -> Value:
    """The accumulators of `steps` tiles from tile `first` on; afterwards no copy is on its way, and all threads are
    done.
    """
    loop = _staged if left.is_async and right.is_async else _through_registers
    return loop(engine, left, right, first, steps, stages)


def stages_for(left_is_async: bool, right_is_async: bool, wanted: int) -> int:
    """How many stages the loop uses."""
    return wanted if left_is_async and right_is_async else 2


@kernel
def _staged(engine: Engine, left: Loader, right: Loader, first: Value, steps: Value, stages: int) -> Value:
    """Copies run `stages - 1` steps ahead; a prologue starts the first ones."""
    for stage in range(stages - 1):
        if stage < steps:
            _start([left, right], first + stage, stage)
        commit_copies()
    total, reading, writing = engine.zeros(), 0, stages - 1
    for step in range(steps):
        wait_for_copies(stages - 2)
        sync_threads()
        later = step + (stages - 1)
        if later < steps:
            _start([left, right], first + later, writing)
        commit_copies()
        total = engine.multiply(total, left.tile, right.tile, reading)
        reading, writing = _next(reading, stages), _next(writing, stages)
    wait_for_copies(0)
    sync_threads()
    return value_of(total)


def _start(loaders: Sequence[Loader], tile: Value, stage: Index) -> None:
    """Start the copies of a tile to a stage."""
    for one in loaders:
        one.start(tile, stage)


def _put(loaders: Sequence[Loader], fragments: Sequence[Sequence[Value]], stage: Index) -> None:
    """Write what was fetched to a stage."""
    for one, some in zip(loaders, fragments, strict=True):
        one.put(some, stage)


@kernel
def _next(stage: Index, stages: int) -> Index:
    next_stage = stage + 1
    return 0 if next_stage == stages else next_stage


@kernel
def _through_registers(engine: Engine, left: Loader, right: Loader, first: Value, steps: Value, stages: int) -> Value:
    """One step ahead, of two stages: what cannot be copied asynchronously waits in registers during a product."""
    direct = [one for one in (left, right) if one.is_async]
    held = [one for one in (left, right) if not one.is_async]
    _start(direct, first, 0)
    _put(held, [one.fetch(first, True) for one in held], 0)
    commit_copies()
    wait_for_copies(0)
    sync_threads()
    total, reading = engine.zeros(), 0
    for step in range(steps):
        writing = 1 - reading
        later = step + 1
        more = later < steps
        tile = first + later
        fragments = [one.fetch(tile, more) for one in held]
        if more:
            _start(direct, tile, writing)
        commit_copies()
        total = engine.multiply(total, left.tile, right.tile, reading)
        _put(held, fragments, writing)
        wait_for_copies(0)
        sync_threads()
        reading = writing
    wait_for_copies(0)
    sync_threads()
    return value_of(total)
