"""A batcher over an engine in this process."""

from __future__ import annotations

from collections.abc import Mapping

from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import Engine
from mlirt.serve.batching.batcher import Batcher
from mlirt.serve.batching.limits import Limits
from mlirt.serve.batching.request import Array, Outputs
from mlirt.serve.batching.signature import signature_of


def engine_batcher(engine: Engine, limits: Limits | None = None, *, batch: bool | None = None) -> Batcher:
    """Let requests be run by an engine, as many batches at once as it has streams.

    Raises `InvalidInputError` for an engine that keeps state between runs: its runs have an order that batches do not
    keep.
    """
    check_stateless(engine)

    def run(feeds: Mapping[str, Array], timeout: float | None) -> Outputs:
        return engine.run(feeds, timeout=timeout)

    return Batcher(
        run,
        signature_of(engine),
        limits,
        runs_at_once=engine.streams,
        batch=batch,
        may_run_in_loop=True,
        memory=None if engine.joins_arrays else engine.host_array,
    )


def check_stateless(engine: Engine) -> None:
    """Raise `InvalidInputError` for an engine with state."""
    if engine.states:
        names = ", ".join(tensor.name for tensor, _ in engine.states)
        raise InvalidInputError(
            f"engine {engine.name!r} keeps {names} from run to run, so requests of several callers cannot share it; "
            "build it without state, and let each request bring its own"
        )
