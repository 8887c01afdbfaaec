"""Requests to stop: what they raise, and when."""

from __future__ import annotations

import ctypes

import pytest

from mlirt.errors import DeadlineError, InvalidInputError, MlirtError, RunCancelledError
from mlirt.runtime.stop_request import StopRequest


def words(stop: StopRequest) -> tuple[int, int]:
    both = (ctypes.c_int64 * 2).from_address(stop.address)
    return both[0], both[1]


def test_nobody_has_asked() -> None:
    stop = StopRequest()
    stop.check()
    assert words(stop) == (0, 0)
    assert stop.seconds_left() == -1


def test_cancelled() -> None:
    stop = StopRequest(60)
    stop.cancel()
    assert words(stop)[0] == 1
    with pytest.raises(RunCancelledError, match="run it again where they are needed"):
        stop.check()


def test_late() -> None:
    stop = StopRequest(0)
    assert words(stop)[1] > 0
    assert stop.seconds_left() == 0
    with pytest.raises(DeadlineError, match="within its timeout of 0 s") as caught:
        stop.check()
    assert isinstance(caught.value, TimeoutError)
    assert isinstance(caught.value, MlirtError)


@pytest.mark.parametrize("timeout", [-1, float("nan"), float("inf"), -1e-9])
def test_times_that_make_no_sense(timeout: float) -> None:
    with pytest.raises(InvalidInputError, match="expected seconds from 0 on, or None to wait for ever"):
        StopRequest(timeout)


def test_a_time_beyond_all_clocks() -> None:
    stop = StopRequest(1e30)
    stop.check()
    assert words(stop)[1] == (1 << 63) - 1
