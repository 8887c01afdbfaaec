"""What one request may ask for, and how many may wait: a server answers the rest with an error at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlirt.errors import InvalidInputError


@dataclass(frozen=True)
class Limits:
    """Sizes of requests, batches and queues."""

    max_batch: int = 32
    """The most rows of a batch, and of a request; profiles of the engine may allow fewer."""
    delay_ms: float = 0.0
    """How long the first request of a batch waits for others; while a batch runs the next one is filled anyway."""
    max_queue: int = 256
    """The most requests that wait; more are refused with `OverloadError`."""
    max_queue_mb: float = 256.0
    """The most MiB of inputs that wait."""
    max_request_mb: float = 64.0
    """The most MiB that the inputs of a request may have."""
    lengths: Mapping[str, int] = field(default_factory=dict[str, int])
    """The greatest length of dimensions by name, where no profile says it: {"h": 1024}."""
    timeout: float | None = None
    """Seconds that a request has where it does not say so itself."""
    batch_sizes: tuple[int, ...] = ()
    """The rows that a batch may have: one of fewer is padded to the next of these. Without any a batch has the rows
    that came, and each number of rows that is new has to be prepared: on a GPU that is a graph of all launches.
    """

    def __post_init__(self) -> None:
        least = {"max_batch": 1, "delay_ms": 0, "max_queue": 1, "max_queue_mb": 0, "max_request_mb": 0, "timeout": 0}
        for name, smallest in least.items():
            value = getattr(self, name)
            if value is not None and not smallest <= value < float("inf"):
                raise InvalidInputError(f"{name} is {value!r}; expected a number from {smallest} on")
        for size in self.batch_sizes:
            if not 1 <= size <= self.max_batch:
                raise InvalidInputError(
                    f"batch_sizes has {size!r}; expected numbers from 1 to max_batch, which is {self.max_batch}"
                )
        for name, value in self.lengths.items():
            if value < 1:
                raise InvalidInputError(f"the limit of dimension {name!r} is {value!r}; expected a number from 1 on")
