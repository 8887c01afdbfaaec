"""Makes one CUDA graph of the launches of a run: what need not wait for each other may run side by side.

The graph is captured from streams, one per lane: a launch follows the one before it in its lane, and waits for events
of other lanes. Where a lane has nothing else to wait for, a kernel with `dependent_launch` begins while the one before
it ends.
"""

from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

from mlirt.runtime.driver_interface import DeviceError, Driver, Handle
from mlirt.runtime.launch_order import lanes

MAX_LANES = 8


class Queued(Protocol):
    """Puts one launch on a stream; `follows` says that all it has to wait for is the launch before it there."""

    def __call__(self, stream: Handle, *, follows: bool) -> None: ...


class Lanes:
    """The streams and events that captures of one context use."""

    def __init__(self, driver: Driver, stream: Handle) -> None:
        self.driver = driver
        self._streams = [stream]
        self._events: list[Handle] = []

    def streams(self, count: int) -> list[Handle]:
        """So many streams, of which the first is the context's own."""
        while len(self._streams) < count:
            self._streams.append(self.driver.new_stream())
        return self._streams[:count]

    def event(self, number: int) -> Handle:
        """An event of its own for each number."""
        while len(self._events) <= number:
            self._events.append(self.driver.new_event())
        return self._events[number]

    def close(self) -> None:
        """Give back what was made here."""
        for stream in self._streams[1:]:
            self.driver.free_stream(stream)
        for event in self._events:
            self.driver.free_event(event)


def capture(launches: Sequence[Queued], waits: Sequence[Sequence[int]], pool: Lanes) -> Handle:
    """The executable graph of launches, each of which waits for earlier ones; 0 for none."""
    if not launches:
        return 0
    driver, (stream,) = pool.driver, pool.streams(1)
    driver.begin_capture(stream)
    try:
        queue_in_lanes(launches, waits, pool)
    except DeviceError:
        with suppress(DeviceError):  # a stream whose capture is not ended is of no use
            driver.free_graph(driver.end_capture(stream))
        raise
    return driver.end_capture(stream)


def queue_in_lanes(launches: Sequence[Queued], waits: Sequence[Sequence[int]], pool: Lanes) -> None:
    """Put launches on the streams of lanes, behind what is on the first stream and before what comes on it next.

    All of it belongs to the graph that the first stream is captured for, where somebody captures it.
    """
    if launches:
        lane_of = lanes(waits, MAX_LANES)
        _queue(launches, waits, lane_of, pool.streams(max(lane_of) + 1), pool)


def _queue(
    launches: Sequence[Queued],
    waits: Sequence[Sequence[int]],
    lane_of: Sequence[int],
    streams: Sequence[Handle],
    pool: Lanes,
) -> None:
    driver, start, last = pool.driver, pool.event(len(launches)), dict[int, int]()
    awaited = {one for number, needed in enumerate(waits) for one in needed if lane_of[one] != lane_of[number]}
    if len(streams) > 1:
        driver.record(start, streams[0])
    for number, (launch, needed) in enumerate(zip(launches, waits, strict=True)):
        lane = lane_of[number]
        stream = streams[lane]
        if lane and not needed and lane not in last:
            driver.wait(stream, start)
        for earlier in needed:
            if lane_of[earlier] != lane:
                driver.wait(stream, pool.event(earlier))
        launch(stream, follows=lane in last and tuple(needed) == (last[lane],))
        last[lane] = number
        if number in awaited:
            driver.record(pool.event(number), stream)
    for lane, number in last.items():
        if lane:
            driver.record(pool.event(number), streams[lane])
            driver.wait(streams[0], pool.event(number))
