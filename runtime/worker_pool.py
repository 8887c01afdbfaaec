"""The threads that help the caller run CPU engines: they live in native code, spin for a while after a run, then sleep.

One pool serves the process. A run wakes all workers with one native call; runs of several contexts queue at its lock,
so that engines do not fight for cores. The code (`mlirt_run`, `mlirt_worker`) is the main object of the plan loaded
first; the layout of its memory is described in builder/spmd_main.py. Each run says how long workers
spin after it; it is counted in pauses, so that the time in which the system takes a worker off its core is not lost.
"""

import atexit
import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence

from mlirt.runtime.host_cpu import processor_count
from mlirt.runtime.host_memory import HostBlock
from mlirt.runtime.object_linker import LinkedCode

SYMBOLS = ("mlirt_main", "mlirt_run", "mlirt_worker", "mlirt_prepare", "mlirt_spin")
_CROWDED_SPIN_SECONDS = 50e-6
_WORD = 8
_SPIN_WORD, _STOP_WORD, _WORKERS_WORD, _WORDS_PER_WORKER = 21, 32, 48, 16
_SYNC_WORDS = 64


class WorkerPool:
    """`threads - 1` workers and the caller; `run` drives one table of kernels through all of them."""

    def __init__(self, code: LinkedCode, section: str, threads: int) -> None:
        self.threads = threads
        self.lock = threading.Lock()
        self._code = code
        address = {symbol: code.addresses[section, symbol] for symbol in SYMBOLS}
        self._main = address["mlirt_main"]
        void, word = None, ctypes.c_int64
        self._run = ctypes.CFUNCTYPE(word, word, word, word, word, word, word)(address["mlirt_run"])
        worker = ctypes.CFUNCTYPE(void, word, word)(address["mlirt_worker"])
        control_words = _WORKERS_WORD + _WORDS_PER_WORKER * (threads + 1)
        self._memory = HostBlock((control_words + _SYNC_WORDS + 16) * _WORD)
        self._control = self._memory.address
        self._sync = self._control + -(-control_words // 16) * 16 * _WORD
        ctypes.CFUNCTYPE(void, word, word)(address["mlirt_prepare"])(self._control, threads)
        self._pauses_per_second = _pauses_per_second(ctypes.CFUNCTYPE(void, word)(address["mlirt_spin"]))
        self._crowded = threads > processor_count()
        self._spin_seconds = -1.0
        self._workers = [
            threading.Thread(target=worker, args=(self._control, tid), name=f"mlirt-{tid}", daemon=True)
            for tid in range(1, threads)
        ]
        self.threads = 1 + _started(self._workers)
        del self._workers[self.threads - 1 :]

    def _word(self, index: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._control + index * _WORD)

    def _let_spin(self, seconds: float) -> None:
        """Grant idle workers `seconds` from the next run on; only a moment where they would take each other's cores."""
        if seconds != self._spin_seconds:
            self._spin_seconds = seconds
            granted = min(seconds, _CROWDED_SPIN_SECONDS) if self._crowded else seconds
            self._word(_SPIN_WORD).value = int(granted * self._pauses_per_second)

    def run(self, table: int, rows: int, spin_seconds: float) -> int:
        """Run `rows` rows of the kernel table at address `table`; the number (from 1) of the row that stopped, or 0.

        Always by the pool's own `mlirt_main`: a worker may still be on its way out of it when the caller, who has left
        the last barrier, frees the engine with its code. It has left the kernels by then.
        """
        if not rows:
            return 0
        with self.lock:
            self._let_spin(spin_seconds)
            return self._run(self._control, self._main, table, rows, self._sync, self.threads)

    def stop(self) -> None:
        """End the workers, so that none is in native code when the process takes that code away."""
        with self.lock:
            self._word(_STOP_WORD).value = 1
            self._run(self._control, self._main, 0, 0, self._sync, self.threads)
        for thread in self._workers:
            thread.join(1.0)


def _started(workers: Sequence[threading.Thread]) -> int:
    """Start them, as far as there is memory for their stacks: fewer do the same work."""
    for count, thread in enumerate(workers):
        try:
            thread.start()
        except RuntimeError:
            return count
    return len(workers)


def _pauses_per_second(spin: Callable[[int], None]) -> float:
    """From the shortest of a few trials, for another process may take the core."""
    trial = 2000
    shortest = min(_timed(spin, trial) for _ in range(3))
    return trial / max(shortest, 1e-9)


def _timed(spin: Callable[[int], None], count: int) -> float:
    start = time.perf_counter()
    spin(count)
    return time.perf_counter() - start


_pools: dict[int, WorkerPool] = {}
_pools_lock = threading.Lock()


def shared_pool(code: LinkedCode, section: str, threads: int) -> WorkerPool:
    """The process's pool of `threads` threads; made from `code` where it is the first."""
    pool = _pools.get(threads)
    if pool is None:
        with _pools_lock:
            if threads not in _pools:
                _pools[threads] = WorkerPool(code, section, threads)
            pool = _pools[threads]
    return pool


def _forget_pools() -> None:
    """A forked child has no workers: it starts its own, and never touches the parent's blocks."""
    global _pools_lock
    _pools_lock = threading.Lock()
    _abandoned.extend(_pools.values())
    _pools.clear()


def _stop_pools() -> None:
    for pool in _pools.values():
        pool.stop()


_abandoned: list[WorkerPool] = []
atexit.register(_stop_pools)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_pools)
