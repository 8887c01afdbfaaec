"""The thread pool of CPU engines: workers that live in native code, spin for a while after a run, then sleep.

A pool is one group of workers: it runs one table at a time, and runtime/worker_groups.py decides who may use it. A run
wakes the workers with one native call. The code (`mlirt_run`, `mlirt_worker`) is the main object of the plan that was
loaded first; the layout of its memory is described in builder/spmd_main.py. How long workers spin is counted in pauses,
so that the time in which the system takes a worker off its core is not lost.
"""

import ctypes
import os
import threading
import time
from collections.abc import Callable, Sequence

from mlirt.runtime.host_cpu import MAX_THREADS, processor_count
from mlirt.runtime.host_memory import HostBlock
from mlirt.runtime.object_linker import LinkedCode
from mlirt.runtime.spin_policy import SpinPolicy, runnable_elsewhere

SYMBOLS = ("mlirt_main", "mlirt_run", "mlirt_alone", "mlirt_worker", "mlirt_prepare", "mlirt_spin")
BORDERED = "mlirt_bordered"
"""The kernel that writes borders before another one; plans without borders may lack it."""
LENGTHS = "mlirt_lengths"
"""What follows lengths that grow; plans of earlier versions lack it."""
_WORD = 8
_MAIN_WORD, _SYNC_WORD, _THREADS_WORD, _SPIN_WORD = 16, 19, 20, 21
_STOP_WORD, _WOKEN_WORD, _WORKERS_WORD, _WORDS_PER_WORKER = 32, 33, 48, 16
_SYNC_WORDS = 64 + 16 * (MAX_THREADS // 32)
_PARTS_OF_A_TICKET = 32
_word, _void = ctypes.c_int64, None


def most_parts(threads: int) -> int:
    """Into how many parts at most so many threads cut a launch, as builder/spmd_code/table_rows.py does it."""
    if threads <= 1:
        return 1
    return 2 * threads if 2 * threads <= _PARTS_OF_A_TICKET else threads


class WorkerPool:
    """`threads - 1` workers and the caller; `run` drives one table of kernels through all of them."""

    def __init__(
        self,
        code: LinkedCode,
        section: str,
        threads: int,
        processors: Sequence[frozenset[int] | None] = (),
        *,
        is_limited: bool = False,
    ) -> None:
        """`processors` are those that each worker may use (None: any), that of the caller included, which is not moved.

        `is_limited`: whether a quota counts the time in which workers spin.
        """
        self._code = code
        address = {symbol: code.addresses[section, symbol] for symbol in SYMBOLS}
        self._run = ctypes.CFUNCTYPE(_word, _word, _word, _word, _word)(address["mlirt_run"])
        worker = ctypes.CFUNCTYPE(_void, _word, _word)(address["mlirt_worker"])
        control_words = _WORKERS_WORD + _WORDS_PER_WORKER * (threads + 1)
        self._memory = HostBlock((control_words + _SYNC_WORDS + 16) * _WORD)
        self._control = self._memory.address
        ctypes.CFUNCTYPE(_void, _word, _word)(address["mlirt_prepare"])(self._control, threads)
        self._word(_MAIN_WORD).value = address["mlirt_main"]
        self._word(_SYNC_WORD).value = self._control + -(-control_words // 16) * 16 * _WORD
        self._word(_THREADS_WORD).value = threads
        self._pauses_per_second = pauses_per_second(address["mlirt_spin"])
        self._spinning = SpinPolicy(processor_count(), runnable_elsewhere, is_limited=is_limited, threads=threads)
        self._spin_seconds = -1.0
        self._workers = [
            threading.Thread(target=self._serve, args=(worker, tid), name=f"mlirt-{tid}", daemon=True)
            for tid in range(1, threads)
        ]
        self.threads = 1 + _started(self._workers)
        del self._workers[self.threads - 1 :]
        self._word(_THREADS_WORD).value = self.threads
        for thread, allowed in zip(self._workers, processors[1:], strict=False):
            _keep_on(thread, allowed)

    def _serve(self, worker: Callable[[int, int], None], tid: int) -> None:
        """The life of a worker, as long as which the pool with its memory lives."""
        worker(self._control, tid)

    def _word(self, index: int) -> ctypes.c_int64:
        return ctypes.c_int64.from_address(self._control + index * _WORD)

    @property
    def workers(self) -> Sequence[threading.Thread]:
        """All but the caller."""
        return self._workers

    @property
    def woken(self) -> int:
        """How often a worker was woken from sleep."""
        return self._word(_WOKEN_WORD).value

    @property
    def spin_seconds(self) -> float:
        """How long workers spin after the run that was last."""
        return self._spin_seconds

    def _let_spin(self, seconds: float) -> None:
        """Grant idle workers `seconds` from the next run on."""
        if seconds != self._spin_seconds:
            self._spin_seconds = seconds
            self._word(_SPIN_WORD).value = int(seconds * self._pauses_per_second)

    def run(self, table: int, rows: int, request: int, spin_seconds: float | None) -> int:
        """Run `rows` rows of the kernel table at address `table`; the number (from 1) of the row that stopped, or 0.

        Less than 0 where the run was asked to stop by what lies at the address `request`. Idle workers spin for
        `spin_seconds`, or as long as the policy finds good. One caller at a time.

        Always by the pool's own `mlirt_main`: a worker may still be on its way out of it when the caller, who has left
        the last barrier, frees the engine with its code. It has left the kernels by then.
        """
        self._let_spin(self._spinning.begin(time.monotonic(), spin_seconds))
        try:
            return self._run(self._control, table, rows, request)
        finally:
            self._spinning.end(time.monotonic())

    def stop(self) -> None:
        """End the workers, so that none is in native code when the process takes that code away; not during a run."""
        self._word(_STOP_WORD).value = 1
        self._run(self._control, 0, 0, 0)
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


def _keep_on(thread: threading.Thread, processors: frozenset[int] | None) -> None:
    """Let a worker run on some processors only, where the system has a say in it."""
    if processors is None or thread.native_id is None or not hasattr(os, "sched_setaffinity"):
        return
    try:
        os.sched_setaffinity(thread.native_id, processors)
    except OSError:
        pass  # the processors were taken from this process in the meantime: the worker runs where it may


def pauses_per_second(address: int) -> float:
    """By `mlirt_spin` at an address, from the shortest of a few trials, for another process may take the core."""
    spin = ctypes.CFUNCTYPE(_void, _word)(address)
    trial = 2000
    shortest = min(_timed(spin, trial) for _ in range(3))
    return trial / max(shortest, 1e-9)


def _timed(spin: Callable[[int], None], count: int) -> float:
    start = time.perf_counter()
    spin(count)
    return time.perf_counter() - start
