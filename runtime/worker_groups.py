"""Groups of workers that runs take turns with: one with all threads for the quickest answer, or many with few.

With `streams` groups of `threads / streams` threads as many runs are computed side by side. A caller takes a group that
is free, or waits for one behind those who came earlier, and holds no lock while its kernels run. In a group of one
thread the caller is the worker. Engines that ask for the same numbers share the groups of the process, so that they do
not fight for cores.
"""

from __future__ import annotations

import atexit
import ctypes
import os
import threading
import time
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from mlirt.errors import InvalidInputError
from mlirt.runtime.fair_queue import FairQueue
from mlirt.runtime.host_cpu import MAX_THREADS, processor_count, thread_count
from mlirt.runtime.numa_nodes import homes, numa_nodes
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.processor_quota import processor_quota
from mlirt.runtime.worker_pool import WorkerPool


@dataclass(frozen=True)
class ThreadChoice:
    """The threads of an engine in all, and the groups that they are divided among."""

    threads: int
    streams: int

    @property
    def each(self) -> int:
        """The threads of a group."""
        return max(1, self.threads // self.streams)


def thread_choice(threads: int | None = None, streams: int | None = None) -> ThreadChoice:
    """What `mlirt.load(threads=, streams=)` stand for; InvalidInputError for numbers that make no sense."""
    for name, wanted in (("threads", threads), ("streams", streams)):
        if wanted is not None and (not isinstance(wanted, int) or not 1 <= wanted <= MAX_THREADS):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InvalidInputError(f"{name} is {wanted!r}; expected a whole number from 1 to {MAX_THREADS}")
    return ThreadChoice(threads or thread_count(), streams or 1)


@dataclass(frozen=True)
class WorkerGroup:
    """Some workers; without a pool the caller is the only one."""

    pool: WorkerPool | None


class WorkerGroups(FairQueue[WorkerGroup]):
    """The groups of one choice of threads; their workers start when they are first needed."""

    def __init__(self, code: LinkedCode, section: str, choice: ThreadChoice) -> None:
        super().__init__(choice.streams, self._made_group)
        self._code, self._section, self._each = code, section, choice.each
        self._homes = homes(numa_nodes(_allowed()), choice.streams, choice.each)
        self.pools: list[WorkerPool] = []
        self.is_alive = True
        """Whether there are such workers: not in a forked child."""

    @property
    def woken(self) -> int:
        """How often a sleeping worker was woken."""
        return sum(pool.woken for pool in self.pools)

    def _made_group(self, number: int) -> WorkerGroup:
        if self._each == 1:
            return WorkerGroup(None)
        quota = processor_quota()
        is_limited = quota is not None and quota < processor_count()
        pool = WorkerPool(self._code, self._section, self._each, self._homes[number], is_limited=is_limited)
        self.pools.append(pool)
        return WorkerGroup(pool)

    def stop(self, patience: float = 1.0) -> bool:
        """End the workers, each group's when its run is over; False where one is not within `patience` seconds.

        Runs that begin later wait for ever: nobody gets a group any more.
        """
        with self._lock:
            self._unmade.clear()
        deadline = time.monotonic() + patience
        for _ in range(len(self.pools)):
            group = self.take(deadline)
            if group is None:
                return False
            if group.pool is not None:
                group.pool.stop()
        return True


@runtime_checkable
class HasGroups(Protocol):
    """A device whose runs take turns with groups of workers."""

    @property
    def groups(self) -> WorkerGroups | None: ...


def _allowed() -> frozenset[int]:
    return frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


_groups: dict[ThreadChoice, WorkerGroups] = {}
_groups_lock = threading.Lock()


def shared_groups(code: LinkedCode, section: str, choice: ThreadChoice) -> WorkerGroups:
    """The process's groups for a choice of threads; made with `code` where they are the first."""
    found = _groups.get(choice)
    if found is None:
        with _groups_lock:
            if choice not in _groups:
                _groups[choice] = WorkerGroups(code, section, choice)
            found = _groups[choice]
    return found


def _forget_groups() -> None:
    """A forked child has no workers: it starts its own, and never touches the parent's blocks."""
    global _groups_lock
    _groups_lock = threading.Lock()
    for groups in _groups.values():
        groups.is_alive = False
        _abandoned.append(groups)
    _groups.clear()


def _stop_pools() -> None:
    """At the end of the process. What still runs then keeps its workers, their memory and their code."""
    for groups in _groups.values():
        if not groups.stop():
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(groups))


_abandoned: list[WorkerGroups] = []
atexit.register(_stop_pools)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_groups)
