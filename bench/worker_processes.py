"""Processes that take jobs one after the other; one that crashes or hangs is replaced, and only its job is lost."""

from __future__ import annotations

import multiprocessing
import os
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import TracebackType
from typing import Any, Self, cast

_STOP_S = 2.0


@dataclass(frozen=True)
class Done:
    """What became of a job: its result, or why there is none."""

    key: Any
    result: Any = None
    why: str = ""


class Workers:
    """So many processes; jobs start in the order in which they are given.

    A job is a function of a module with arguments that can be pickled. `limit` is the seconds that one may take.
    """

    def __init__(self, count: int, limit: float = 1e9) -> None:
        self._count, self._limit = count, limit
        self._waiting: deque[tuple[Any, Callable[..., Any], tuple[Any, ...]]] = deque()
        self._idle: list[_Worker] = []
        self._busy: dict[Connection, _Worker] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for worker in [*self._idle, *self._busy.values()]:
            worker.stop()

    def submit(self, key: Any, function: Callable[..., Any], *arguments: Any) -> None:
        """Queue a job; `key` comes back with its result."""
        self._waiting.append((key, function, arguments))

    def results(self, is_over: Callable[[], bool] = lambda: False) -> Iterator[Done]:
        """What the jobs gave, as they end; ends when all have, or when time is over."""
        while (self._waiting or self._busy) and not is_over():
            while self._waiting and len(self._busy) < self._count:
                worker = self._idle.pop() if self._idle else _Worker()
                worker.begin(*self._waiting.popleft())
                self._busy[worker.pipe] = worker
            yield from self._ended()

    def _ended(self) -> Iterator[Done]:
        for pipe in wait(list(self._busy), timeout=0.5):
            worker = self._busy.pop(cast("Connection", pipe))
            done = worker.finish()
            if worker.process.is_alive():
                self._idle.append(worker)
            yield done
        for pipe, worker in list(self._busy.items()):
            if time.monotonic() - worker.since > self._limit:
                del self._busy[pipe]
                worker.stop()
                yield Done(worker.key, why=f"took longer than {self._limit:.0f} s")

    def left(self) -> list[Any]:
        """The keys of jobs that have no result."""
        return [worker.key for worker in self._busy.values()] + [key for key, _, _ in self._waiting]


class _Worker:
    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")  # a process that is forked from one with CUDA cannot use it
        self.pipe, theirs = context.Pipe()
        self.process: SpawnProcess = context.Process(target=_serve, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()
        self.key: Any = None
        self.since = 0.0

    def begin(self, key: Any, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.key, self.since = key, time.monotonic()
        self.pipe.send((function, arguments))

    def finish(self) -> Done:
        try:
            result, why = self.pipe.recv()
            return Done(self.key, result, why)
        except (EOFError, OSError):
            self.process.join(_STOP_S)
            return Done(self.key, why=f"the process ended with {self.process.exitcode}")

    def stop(self) -> None:
        self.pipe.close()
        self.process.terminate()
        self.process.join(_STOP_S)
        if self.process.is_alive():
            self.process.kill()


def _serve(pipe: Connection) -> None:
    """Run jobs until the other end is closed."""
    os.setpgrp()  # the processes that a job starts end with it, not with a key that is pressed
    while True:
        try:
            function, arguments = pipe.recv()
        except (EOFError, OSError):
            return
        try:
            answer = (function(*arguments), "")
        except Exception as error:
            last = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(str(error).split())[:400]
            answer = (None, f"{type(error).__name__}: {text} ({os.path.basename(last.filename)}:{last.lineno})")
        pipe.send(answer)
