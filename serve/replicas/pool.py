"""Some replicas of one plan: a request goes to one that is free, and to another one where that ends."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Mapping

from mlirt.errors import DeadlineError, MlirtError, UnavailableError
from mlirt.runtime.visible_devices import device_of_number, visible_devices
from mlirt.serve.batching.request import Array
from mlirt.serve.batching.signature import Signature
from mlirt.serve.replicas.replica import Replica, ReplicaEndedError, usual_threads

_LOG = logging.getLogger("mlirt.serve")
_MAX_ATTEMPTS = 3
"""How many processes a request may end before it is the request's fault."""
_MIN_PAUSE, _MAX_PAUSE = 0.05, 5.0
"""Seconds before a process that ended soon after its start is started again; they double each time."""
_SOON = 10.0
"""Seconds."""


class ReplicaPool:
    """Keeps `replicas` processes running the plan in the file `plan`. Where there are several GPUs they are dealt out.

    threads: those of each process; None divides the processors. start_timeout: seconds in which a process must have
    opened its plan. Raises what the first process says where the plan cannot be opened.
    """

    def __init__(
        self, plan: str, replicas: int = 2, *, threads: int | None = None, start_timeout: float = 120.0
    ) -> None:
        self._plan = plan
        self._threads = usual_threads(replicas) if threads is None else threads
        self._start_timeout = start_timeout
        self._free: queue.Queue[Replica | None] = queue.Queue()
        self._running: dict[int, Replica] = {}
        self._closing = threading.Event()
        self._restarts = 0
        self._devices = visible_devices() if replicas > 1 else ()
        first = self._started(0)
        self.signature: Signature = first.signature
        self.count = replicas
        self._watchers = [
            threading.Thread(target=self._watch, args=(first if number == 0 else None, number), daemon=True)
            for number in range(replicas)
        ]
        for watcher in self._watchers:
            watcher.start()

    @property
    def pids(self) -> tuple[int, ...]:
        """The processes that run now."""
        return tuple(replica.pid for replica in list(self._running.values()) if replica.is_alive)

    @property
    def gpus(self) -> tuple[str, ...]:
        """Where on the bus the GPUs of the processes are that run now; none for plans of a CPU."""
        return tuple(one.gpu for one in list(self._running.values()) if one.is_alive and one.gpu is not None)

    @property
    def restarts(self) -> int:
        """How often a process was started again."""
        return self._restarts

    def run(self, feeds: Mapping[str, Array], timeout: float | None = None) -> Mapping[str, Array]:
        """The outputs by name. A run has no effect but its outputs, so one whose process ends is made by another."""
        deadline = None if timeout is None else time.monotonic() + timeout
        for _ in range(_MAX_ATTEMPTS):
            replica = self._take(deadline)
            try:
                found = replica.ask(feeds, None if deadline is None else max(0.0, deadline - time.monotonic()))
            except ReplicaEndedError as error:
                _LOG.warning("%s; it is given to another one", error)
                continue
            except MlirtError:
                self._give_back(replica)
                raise
            self._give_back(replica)
            return found
        raise UnavailableError(f"{_MAX_ATTEMPTS} replicas ended one after the other while they ran the request")

    def close(self) -> None:
        """End all processes; callers have no request running any more."""
        self._closing.set()
        for replica in list(self._running.values()):
            replica.stop()
        for watcher in self._watchers:
            watcher.join()

    def _take(self, deadline: float | None) -> Replica:
        until = time.monotonic() + self._start_timeout
        while not self._closing.is_set():
            seconds = (until if deadline is None else min(deadline, until)) - time.monotonic()
            try:
                replica = self._free.get(timeout=max(0.0, seconds))
            except queue.Empty:
                break
            if replica is not None and replica.is_alive:
                return replica
        if deadline is not None and deadline <= time.monotonic():
            raise DeadlineError("the timeout of the request has passed while it waited for a replica")
        raise UnavailableError(f"no replica of {self._plan} is running")

    def _give_back(self, replica: Replica) -> None:
        if replica.is_alive:
            self._free.put(replica)

    def _started(self, number: int) -> Replica:
        return Replica(self._plan, self._threads, self._start_timeout, device_of_number(number, self._devices))

    def _watch(self, replica: Replica | None, number: int) -> None:
        """Start a process again and again, as often as it ends."""
        pause = _MIN_PAUSE
        while not self._closing.is_set():
            begun = time.monotonic()
            try:
                replica = replica or self._started(number)
            except MlirtError as error:
                _LOG.error("%s", error)
            else:
                self._serve_with(replica, number)
                replica = None
            if time.monotonic() - begun > _SOON:
                pause = _MIN_PAUSE
            if not self._closing.wait(pause):
                self._restarts += 1
            pause = min(2 * pause, _MAX_PAUSE)

    def _serve_with(self, replica: Replica, number: int) -> None:
        self._running[number] = replica
        if self._closing.is_set():
            replica.stop()
            return
        _LOG.info("replica %d has pid %d%s", number, replica.pid, f", GPU {replica.gpu}" if replica.gpu else "")
        self._free.put(replica)
        replica.wait()
        if not self._closing.is_set():
            _LOG.warning("the replica with pid %d has ended; another one is started", replica.pid)
