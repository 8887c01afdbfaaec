"""What answers for a model: a batcher over an engine in this process, or over replicas."""

from __future__ import annotations

from dataclasses import dataclass, field

from mlirt.errors import InvalidInputError
from mlirt.runtime.engine import load
from mlirt.serve.batching.batcher import Batcher
from mlirt.serve.batching.engine_batcher import engine_batcher
from mlirt.serve.batching.limits import Limits
from mlirt.serve.replicas.pool import ReplicaPool


@dataclass(frozen=True)
class ServeSettings:
    """How a plan is served."""

    limits: Limits = field(default_factory=Limits)
    replicas: int = 0
    """Worker processes; 0 runs the engine in this process."""
    threads: int | None = None
    """Threads that compute, of each process; None divides the processors."""
    streams: int | None = None
    """Batches that run at once in this process; replicas run one each."""
    batch: bool | None = None
    """Whether requests are joined; None finds out."""

    def __post_init__(self) -> None:
        if self.replicas < 0:
            raise InvalidInputError(f"replicas is {self.replicas}; expected a number from 0 on")
        if self.replicas and self.streams is not None:
            raise InvalidInputError("streams are those of an engine in this process; replicas run one batch each")


@dataclass(frozen=True)
class Backend:
    """A batcher, and the replicas behind it."""

    batcher: Batcher
    pool: ReplicaPool | None = None

    def close(self) -> None:
        """Answer what waits, then let go of all."""
        self.batcher.close()
        if self.pool is not None:
            self.pool.close()


def open_backend(plan: str, settings: ServeSettings) -> Backend:
    """Open the plan file as the settings say; `PlanError` where it cannot be opened."""
    if not settings.replicas:
        engine = load(plan, threads=settings.threads, streams=settings.streams)
        return Backend(engine_batcher(engine, settings.limits, batch=settings.batch))
    pool = ReplicaPool(plan, settings.replicas, threads=settings.threads)
    try:
        batcher = Batcher(
            pool.run, pool.signature, settings.limits, runs_at_once=settings.replicas, batch=settings.batch
        )
    except BaseException:
        pool.close()
        raise
    return Backend(batcher, pool)
