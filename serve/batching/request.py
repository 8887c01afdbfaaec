"""One request: its arrays, how many rows they have, until when it is of use, and the future of its answer."""

from __future__ import annotations

import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Outputs = dict[str, Array]
Key = tuple[object, ...]
"""What is equal among the requests of a batch."""


class Answer(Future[Outputs]):
    """The outputs by name, once there are any; tells how long the request waited and how large its batch was."""

    waited: float = 0.0
    """Seconds from the call until its batch began."""
    batch_rows: int = 0
    """How many rows its batch had."""


@dataclass(eq=False)
class Request:
    """A request that waits, or runs."""

    feeds: dict[str, Array]
    rows: int
    """The length of the batch dimension; 1 where requests are not joined."""
    key: Key
    size: int
    """Bytes of its inputs."""
    timeout: float | None
    came: float = field(default_factory=time.monotonic)
    answer: Answer = field(default_factory=Answer)

    @property
    def deadline(self) -> float:
        """In seconds of `time.monotonic`."""
        return float("inf") if self.timeout is None else self.came + self.timeout
