"""A table of kernels that waits to be run, and how the caller's thread runs it alone."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mlirt.runtime.caller_arrays import InputPlace, OutputPlace
from mlirt.runtime.stop_request import StopRequest
from mlirt.runtime.worker_choice import WorkerChoice

_WORDS, _ROWS, _REQUEST, _TABLE, _DOOR = 16, 4, 7, 8, 9
Native = Callable[[int], int]


class Job:
    """The words that `mlirt_alone` reads, which builder/spmd_main.py describes."""

    def __init__(self, table: int, rows: int, door: int = 0) -> None:
        """`door`: the address of the interpreter's, where there is one."""
        self.table, self.rows = table, rows
        self.words, self._brief_words = _words(table, rows, door), _words(table, rows, 0)
        self.address = ctypes.addressof(self.words)
        self.brief_address = ctypes.addressof(self._brief_words)
        """For `CallerCode.brief`, which keeps the interpreter's lock."""

    def ask(self, stop: StopRequest | None) -> None:
        """Let the next run look at a request to stop, or at none."""
        self.words[_REQUEST] = 0 if stop is None else stop.address


class CallerCode:
    """Runs jobs on the thread that calls; it takes no lock, and wakes nobody."""

    def __init__(self, native: Native, brief: Native) -> None:
        self.native = native
        """Lets other threads of Python run in the meantime."""
        self.brief = brief
        """Does not: for jobs that are done before another thread could have begun."""

    def run(self, job: Job, stop: StopRequest | None, *, is_brief: bool = False) -> int:
        """The number of the row that stopped it, or 0; less than 0 where it was asked to stop."""
        if not job.rows:
            return 0
        if stop is None:
            return self.brief(job.brief_address) if is_brief else self.native(job.address)
        job.ask(stop)
        try:
            return self.native(job.address)
        finally:
            job.ask(None)


class Tenanted(Protocol):
    """Memory that programs use by turns."""

    tenant: object


@dataclass(frozen=True)
class ShortCut:
    """The one call that a run is once its arrays are in place and the arena is as it was left."""

    execute: Callable[[], int]
    beside: Callable[[], int]
    """The same beside runs of other threads."""
    brief: Callable[[], int] | None
    """The same for a run that is over before another thread of Python could have begun; None where workers help."""
    choice: WorkerChoice | None
    """`execute`, where trials decide who runs it."""
    session: Tenanted
    tenancy: object
    """The session's tenant, where no other program has used the arena since."""
    enter: Callable[[], None]
    """Makes it ready where one has."""
    shapes: Sequence[tuple[int, ...]]
    """Those of the inputs."""
    inputs: Sequence[InputPlace]
    outputs: Sequence[OutputPlace]


def caller_code(address: int | None) -> CallerCode:
    """For `mlirt_alone` at an address; a plan without code has nothing to run."""
    if address is None:
        return CallerCode(_nothing, _nothing)
    word = ctypes.c_int64
    return CallerCode(ctypes.CFUNCTYPE(word, word)(address), ctypes.PYFUNCTYPE(word, word)(address))


def follower(address: int) -> Callable[[int, int, int, int], int]:
    """`mlirt_lengths` at an address; it takes microseconds, in which the interpreter's lock is kept."""
    word = ctypes.c_int64
    return ctypes.PYFUNCTYPE(word, word, word, word, word)(address)


def _words(table: int, rows: int, door: int) -> ctypes.Array[ctypes.c_int64]:
    words = (ctypes.c_int64 * _WORDS)()
    words[_ROWS], words[_TABLE], words[_DOOR] = rows, table, door
    return words


def _nothing(job: int) -> int:
    return 0
