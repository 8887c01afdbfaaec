"""Things that callers take turns with: who waits longest gets the one that is next given back."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

T = TypeVar("T")


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
        self.bell = threading.Lock()
        self.bell.acquire()


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

    @property
    def use(self) -> QueueUse:
        """What has happened so far."""
        return QueueUse(self._in_use - len(self._free), self._most_running, self._waited)

    def take(self, deadline: float | None = None) -> T | None:
        """One of the things, after those who came earlier; None where it is not to be had until `time.monotonic()`."""
        if not self._waiting:
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
                self._serve()  # something may have come back since it was looked for
                self._waited += not waiter.given
        if waiter is not None:
            return self._after_waiting(waiter, deadline)
        self._note_most()
        return self._made_one(number)

    def _serve(self) -> None:
        """Let those who wait have what is free; with the lock."""
        while self._waiting:
            try:
                thing = self._free.pop()
            except IndexError:
                return
            waiter = self._waiting.popleft()
            waiter.given.append(thing)
            waiter.bell.release()

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
                waiter.bell.release()
            raise

    def _after_waiting(self, waiter: _Waiter[T], deadline: float | None) -> T | None:
        try:
            waiter.bell.acquire(timeout=-1 if deadline is None else max(0.0, deadline - time.monotonic()))
        except BaseException:
            if (thing := self._leave(waiter)) is not None:
                self.give_back(thing)
            raise
        thing = self._leave(waiter)
        return self.take(deadline) if waiter.is_to_make else thing

    def _leave(self, waiter: _Waiter[T]) -> T | None:
        """What a waiter was given; where it was nothing, it waits no more."""
        with self._lock:
            if waiter.given:
                return waiter.given.pop()
            if waiter in self._waiting:
                self._waiting.remove(waiter)
        return None
