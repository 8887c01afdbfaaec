"""Repeats runs of an engine on a GPU, behind caches that hold its own data and behind caches that hold other data."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Protocol

import numpy as np

from mlirt.runtime.cuda_memory import DeviceBlock
from mlirt.runtime.driver_interface import Driver

Array = np.ndarray[Any, np.dtype[Any]]
RUNS = 100


class Runnable(Protocol):
    """An engine, as far as it is run here."""

    def run(self, feeds: Mapping[str, Array], /) -> dict[str, Array]: ...


class SweptCache:
    """Fills the second-level cache of a device with other memory, so that nothing of an engine is left in it."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._stream = self._driver.new_stream()
        self._block = DeviceBlock(self._driver, 2 * self._driver.cache_bytes())

    def sweep(self, byte: int) -> None:
        """Returns when it is done."""
        self._driver.activate()
        self._driver.fill(self._block.address, self._block.size, byte & 255, self._stream)
        self._driver.synchronize(self._stream)


@cache
def _of_this_machine() -> SweptCache:
    from mlirt.runtime.cuda_driver import open_driver

    driver = open_driver()
    driver.activate()
    return SweptCache(driver)


def differing_runs(
    engine: Runnable, feeds: Mapping[str, Array], runs: int = RUNS, driver: Driver | None = None
) -> list[int]:
    """The numbers of the runs whose outputs have other bits than those of the first.

    Odd runs come behind a swept cache: whoever reads what another has not finished to write finds other data there.
    """
    swept = _of_this_machine() if driver is None else SweptCache(driver)
    first = _bits(engine, feeds)
    found: list[int] = []
    for number in range(1, runs + 1):
        if number % 2:
            swept.sweep(number)
        if _bits(engine, feeds) != first:
            found.append(number)
    return found


def _bits(engine: Runnable, feeds: Mapping[str, Array]) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in engine.run(feeds).items()}
