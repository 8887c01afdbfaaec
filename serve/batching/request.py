"""One request: its arrays, how many rows they have, until when it is of use, and the future of its answer."""

from __future__ import annotations

import math
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
    tag: Any = None
    """What the caller gave with the request, for whoever is told of answers by batches."""


@dataclass(eq=False, slots=True)
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
    deadline: float = field(init=False)
    """In seconds of `time.monotonic`; infinite where there is no timeout."""

    def __post_init__(self) -> None:
        self.deadline = math.inf if self.timeout is None else self.came + self.timeout
