"""Things that callers take turns with: who waits longest gets the one that is next given back, but for a moment.

To wake a caller takes tens of microseconds, in which nobody has what was kept for it, and a short run by who is awake
would be over. So what comes back may be taken by whoever comes by, until the caller that waits longest has been first
in the queue for a millisecond: then it is handed to that one. Those who wait are never overtaken by each other.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")
PATIENCE = 1e-3
"""Seconds in which the first caller of the queue may be overtaken."""


@dataclass(frozen=True)
class QueueUse:
    """How much callers have stood in each other's way."""

    running: int
    """The callers that have one of the things now."""
    most_running: int
    """The most that ever had one at the same time."""
    waited: int
    """How often a caller found none free."""


class _Waiter(Generic[T]):
    """A caller in the queue, and what it is given."""

    def __init__(self) -> None:
        self.given: list[T] = []
        self.is_to_make = False
        self.was_called = False
        """Whether it was woken to take what is free, in vain or not: a second time would only cost others."""
        self.bell = threading.Lock()
        self.bell.acquire()

    def ring(self) -> None:
        """Wake it; with the queue's lock, by which it is rung once."""
        if self.bell.locked():
            self.bell.release()

    def wait(self, patient_until: float, deadline: float | None) -> None:
        """Sleep until it is woken, or for as long as makes sense."""
        now = time.monotonic()
        end = deadline
        if self.was_called and now < patient_until:  # what it was called for may have come back by then
            end = patient_until if end is None else min(end, patient_until)
        self.bell.acquire(timeout=-1 if end is None else max(0.0, end - now))


class FairQueue(Generic[T]):
    """At most `count` things, made when they are first needed. The lock is taken where somebody waits."""

    def __init__(self, count: int, make: Callable[[int], T]) -> None:
        self.count = count
        self._make = make
        self._unmade = list(range(count))[::-1]
        self._free: list[T] = []
        self._waiting: deque[_Waiter[T]] = deque()
        self._lock = threading.Lock()
        self._in_use = self._most_running = self._waited = 0
        self._patient_until = 0.0
        """Until when the first in the queue is overtaken."""

    @property
    def use(self) -> QueueUse:
        """What has happened so far."""
        return QueueUse(self._in_use - len(self._free), self._most_running, self._waited)

    def take(self, deadline: float | None = None) -> T | None:
        """One of the things, in turn; None where it is not to be had until `time.monotonic()` is the deadline."""
        if not self._waiting or time.monotonic() < self._patient_until:
            try:
                thing = self._free.pop()  # which no other thread of Python can do at the same time
            except IndexError:
                pass
            else:
                if self._in_use - len(self._free) > self._most_running:
                    self._note_most()
                return thing
        return self._take_in_turn(deadline)

    def give_back(self, thing: T) -> None:
        """Let the next one have it."""
        self._free.append(thing)
        if self._waiting:
            with self._lock:
                self._serve()

    def _take_in_turn(self, deadline: float | None) -> T | None:
        with self._lock:
            if self._unmade and not self._waiting and not self._free:
                waiter, number = None, self._unmade.pop()
                self._in_use += 1
            else:
                self._waiting.append(waiter := _Waiter[T]())
                number = 0
                if self._waiting[0] is waiter:
                    self._patient_until = time.monotonic() + PATIENCE
                self._serve()  # something may have come back since it was looked for
                self._waited += 1
        if waiter is not None:
            return self._after_waiting(waiter, deadline)
        self._note_most()
        return self._made_one(number)

    def _serve(self) -> None:
        """Hand what is free to those who have waited long enough, and wake the next one to look for itself.

        With the lock.
        """
        while self._waiting and self._free:
            waiter, now = self._waiting[0], time.monotonic()
            if now < self._patient_until:
                if not waiter.was_called:
                    waiter.was_called = True
                    waiter.ring()
                return
            waiter.given += self._taken()
            if not waiter.given:
                return
            self._waiting.popleft()
            self._patient_until = now + PATIENCE
            waiter.ring()

    def _taken(self) -> list[T]:
        """One that is free, if it is still there: others take them without the lock."""
        try:
            return [self._free.pop()]
        except IndexError:
            return []

    def _note_most(self) -> None:
        with self._lock:
            self._most_running = max(self._most_running, self._in_use - len(self._free))

    def _made_one(self, number: int) -> T:
        try:
            return self._make(number)
        except BaseException:
            with self._lock:
                self._in_use -= 1
                self._unmade.append(number)
                waiter = self._waiting.popleft() if self._waiting else None
                if waiter is not None:
                    waiter.is_to_make = True
                    waiter.ring()
            raise

    def _after_waiting(self, waiter: _Waiter[T], deadline: float | None) -> T | None:
        while True:
            try:
                waiter.wait(self._patient_until, deadline)
            except BaseException:
                with self._lock:
                    self._free += waiter.given
                    self._leave(waiter)
                raise
            with self._lock:
                if not waiter.given and self._waiting and self._waiting[0] is waiter:
                    waiter.given += self._taken()
                if waiter.given:
                    self._leave(waiter)
                    return waiter.given.pop()
                if waiter.is_to_make or (deadline is not None and time.monotonic() >= deadline):
                    self._leave(waiter)
                    break
        return self.take(deadline) if waiter.is_to_make else None

    def _leave(self, waiter: _Waiter[T]) -> None:
        """It waits no more; who comes behind it may have what is free. With the lock."""
        if waiter in self._waiting:
            if self._waiting[0] is waiter:
                self._patient_until = time.monotonic() + PATIENCE
            self._waiting.remove(waiter)
        self._serve()
