"""Measured runs of one engine by several contexts at once, each driven by a thread of its own (trtexec's streams)."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mlirt.runtime.device import RunTimes


class Runs(Protocol):
    """The runs of one stream."""

    def __call__(self) -> RunTimes:
        """The times of the next run."""
        ...

    def drain(self) -> list[RunTimes]:
        """Wait for the runs that have been queued ahead."""
        ...


@dataclass
class OneByOne:
    """Runs of which none is queued ahead."""

    run: Callable[[], RunTimes]

    def __call__(self) -> RunTimes:
        """Run and wait."""
        return self.run()

    def drain(self) -> list[RunTimes]:
        """Nothing is queued."""
        return []


def repeat_side_by_side(each: Sequence[Runs], count: int, seconds: float, pause: float) -> list[RunTimes]:
    """At least `count` runs of each, and at least `seconds`; all runs in the order in which they ended.

    What one of them raises is raised here, once the others are done.
    """
    if len(each) == 1:
        return _repeat(each[0], count, seconds, pause)
    found: list[list[RunTimes]] = [[] for _ in each]
    faults: list[BaseException] = []
    start = threading.Barrier(len(each))

    def work(number: int) -> None:
        try:
            start.wait()
            found[number] = _repeat(each[number], count, seconds, pause)
        except BaseException as error:  # to be raised where the user sees it
            faults.append(error)

    threads = [threading.Thread(target=work, args=(number,), daemon=True) for number in range(len(each))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if faults:
        raise faults[0]
    return sorted((run for runs in found for run in runs), key=lambda run: run.end_d2h)


def _repeat(once: Runs, count: int, seconds: float, pause: float) -> list[RunTimes]:
    runs: list[RunTimes] = []
    start = time.perf_counter()
    while len(runs) < count or time.perf_counter() - start < seconds:
        runs.append(once())
        if pause:
            time.sleep(pause)
    return runs + once.drain()
