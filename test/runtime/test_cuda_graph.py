"""The captured graph: what runs after what follows from the streams, the events and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mlirt.runtime.cuda_graph import Lanes, Queued, capture
from mlirt.runtime.driver_interface import DeviceError, Driver


class Recorder:
    """A driver that notes what each stream has been told to come after."""

    def __init__(self) -> None:
        self.after: dict[int, set[int]] = {}  # by stream: the launches that what comes next there follows
        self.events: dict[int, set[int]] = {}
        self.forked: set[int] = set()
        self.order: list[set[int]] = []
        self.follows: list[bool] = []
        self.handles = 1000
        self.joined: set[int] = set()
        self.freed: list[int] = []

    def new_stream(self) -> int:
        self.handles += 1
        return self.handles

    new_event = new_stream

    def begin_capture(self, stream: int) -> None:
        self.forked = {stream}

    def record(self, event: int, stream: int) -> None:
        assert stream in self.forked, "the stream does not belong to the capture"
        self.events[event] = set(self.after.get(stream, ()))

    def wait(self, stream: int, event: int) -> None:
        self.after.setdefault(stream, set()).update(self.events[event])
        self.forked.add(stream)

    def launch(self, stream: int, *, follows: bool) -> None:
        assert stream in self.forked, "the stream does not belong to the capture"
        own = self.after.setdefault(stream, set())
        self.order.append(set(own))
        self.follows.append(follows)
        own.add(len(self.order) - 1)

    def free_graph(self, graph: int) -> None:
        self.freed.append(graph)

    def end_capture(self, stream: int) -> int:
        self.joined = self.after.get(stream, set())
        return 7


def captured(waits: Sequence[Sequence[int]]) -> Recorder:
    recorder = Recorder()
    pool = Lanes(cast("Driver", recorder), 1)
    launches: list[Queued] = [recorder.launch for _ in waits]
    assert capture(launches, waits, pool) == (7 if waits else 0)
    return recorder


@st.composite
def waits(draw: st.DrawFn) -> list[tuple[int, ...]]:
    count = draw(st.integers(0, 14))
    earlier: Any = [st.lists(st.integers(0, max(n - 1, 0)), unique=True, max_size=3 if n else 0) for n in range(count)]
    return [tuple(sorted(draw(one))) for one in earlier]


@given(waits())
def test_every_launch_comes_after_what_it_waits_for_and_all_are_joined(needed: list[tuple[int, ...]]) -> None:
    recorder = captured(needed)
    for number, (own, after) in enumerate(zip(needed, recorder.order, strict=True)):
        assert set(own) <= after, number
    if needed:
        assert recorder.joined == set(range(len(needed)))


def test_a_chain_is_one_stream_where_kernels_may_overlap() -> None:
    recorder = captured([(), (0,), (1,)])
    assert recorder.follows == [False, True, True]
    assert set(recorder.after) == {1}


def test_branches_run_side_by_side() -> None:
    recorder = captured([(), (0,), (0,), (1, 2)])
    assert recorder.order[2] == {0}
    assert recorder.order[1] == {0}
    assert recorder.follows == [False, True, False, False]


def test_a_launch_that_is_refused_leaves_no_open_capture() -> None:
    recorder = Recorder()

    def refused(stream: int, *, follows: bool) -> None:
        raise DeviceError("CUDA: cuLaunchKernel: too many resources requested")

    with pytest.raises(DeviceError, match="too many resources"):
        capture([recorder.launch, refused], [(), (0,)], Lanes(cast("Driver", recorder), 1))
    assert recorder.freed == [7]
