"""The requests that wait, bounded in number and bytes, and the choice of those that go into the next batch."""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from mlirt.errors import DeadlineError, OverloadError, UnavailableError
from mlirt.serve.batching.limits import Limits
from mlirt.serve.batching.request import Key, Request

_MEBI = float(1 << 20)


@dataclass
class _Group:
    """Requests that may be joined, in the order in which they came."""

    requests: deque[Request] = field(default_factory=deque[Request])
    rows: int = 0


class RequestQueue:
    """Who came first is in the next batch; requests with an equal key join it in their order while there is room."""

    def __init__(self, limits: Limits, most_rows: Callable[[Request], int]) -> None:
        self._limits = limits
        self._most_rows = most_rows
        self._changed = threading.Condition(threading.Lock())
        self._waiting: dict[Key, _Group] = {}
        self._count = self._size = self._with_deadline = 0
        self._is_closed = False

    def __len__(self) -> int:
        return self._count

    @property
    def size(self) -> int:
        """Bytes of the inputs of all that wait."""
        return self._size

    def put(self, request: Request, *, wakes: bool = True) -> None:
        """Let it wait; OverloadError where too many do, UnavailableError where nobody will take it.

        Without `wakes` it is the caller's to take it, by `take_now`.
        """
        with self._changed:
            self._put(request)
            if wakes:
                self._changed.notify()

    def wake(self) -> None:
        """Let who waits in `take` look again."""
        with self._changed:
            self._changed.notify()

    def put_all(self, requests: Sequence[Request]) -> int:
        """Let requests wait that came together; the answers of those that are refused have the error. How many are."""
        refused = 0
        with self._changed:
            for request in requests:
                try:
                    self._put(request)
                except (OverloadError, UnavailableError) as error:
                    request.answer.set_exception(error)
                    refused += 1
            self._changed.notify_all()
        return refused

    def _put(self, request: Request) -> None:
        if self._is_closed:
            raise UnavailableError("the server takes no more requests: it is being closed")
        self.check_room(request.size)
        group = self._waiting.get(request.key)
        if group is None:
            group = self._waiting[request.key] = _Group()
        group.requests.append(request)
        group.rows += request.rows
        self._count += 1
        self._size += request.size
        self._with_deadline += request.deadline < math.inf

    def check_room(self, size: int = 0) -> None:
        """OverloadError where a request of so many bytes would be refused."""
        limits, count = self._limits, self._count
        if count >= limits.max_queue or (count and self._size + size > limits.max_queue_mb * _MEBI):
            raise OverloadError(
                f"{count} requests with {self._size} bytes wait; expected fewer than {limits.max_queue} and "
                f"{limits.max_queue_mb:g} MiB: send the request again later"
            )

    def take(self) -> list[Request]:
        """The requests of the next batch, as soon as there are any; none once the queue is closed and empty."""
        with self._changed:
            while True:
                self._drop_what_is_over()
                if not self._count:
                    if self._is_closed:
                        return []
                    self._changed.wait()
                    continue
                group = min(self._waiting.values(), key=_came)
                seconds = self._seconds_to_wait(group)
                if seconds > 0:
                    self._changed.wait(seconds)
                elif found := self._taken(group):
                    return found

    def take_now(self) -> list[Request]:
        """The requests of the next batch; none where nothing waits."""
        with self._changed:
            self._drop_what_is_over()
            return self._taken(min(self._waiting.values(), key=_came)) if self._count else []

    def close(self) -> None:
        """Take no more; those that wait are still taken."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def fail_all(self, error: Exception) -> None:
        """Answer all that wait with an error."""
        with self._changed:
            for request in [one for group in self._waiting.values() for one in group.requests]:
                self._remove(request)
                if request.answer.set_running_or_notify_cancel():
                    request.answer.set_exception(error)

    def _seconds_to_wait(self, group: _Group) -> float:
        first = group.requests[0]
        if self._is_closed or not self._limits.delay_ms or group.rows >= self._most_rows(first):
            return 0.0
        return min(first.came + self._limits.delay_ms / 1e3, first.deadline) - time.monotonic()

    def _taken(self, group: _Group) -> list[Request]:
        """The first requests of a group that fit into a batch; those that were cancelled are left out."""
        room, found = self._most_rows(group.requests[0]), list[Request]()
        while group.requests:
            request = group.requests[0]
            if found and request.rows > room:
                break
            self._remove(request)
            if request.answer.set_running_or_notify_cancel():
                found.append(request)
                room -= request.rows
        return found

    def _drop_what_is_over(self) -> None:
        """Whose deadline has passed would be computed for nobody."""
        if not self._with_deadline:
            return
        now = time.monotonic()
        for request in [one for group in self._waiting.values() for one in group.requests if one.deadline <= now]:
            self._remove(request)
            if request.answer.set_running_or_notify_cancel():
                request.answer.set_exception(late(request, "while it waited for its turn"))

    def _remove(self, request: Request) -> None:
        group = self._waiting[request.key]
        group.requests.remove(request)
        group.rows -= request.rows
        if not group.requests:
            del self._waiting[request.key]
        self._count -= 1
        self._size -= request.size
        self._with_deadline -= request.deadline < math.inf


def late(request: Request, when: str) -> DeadlineError:
    """The error for a request whose time was over."""
    return DeadlineError(
        f"the timeout of {request.timeout} s has passed {when}; give it more time, or send fewer requests"
    )


def _came(group: _Group) -> float:
    return group.requests[0].came
