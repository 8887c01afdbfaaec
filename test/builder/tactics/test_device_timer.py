"""Plans are measured in turns; one that the device refuses, or that is far behind, holds up nobody."""

from __future__ import annotations

from math import inf
from typing import Any

import numpy as np
from fake_driver import FakeDriver, cuda_plan
from tiny_plan import tiny_parts

from mlirt.builder.tactics.device_timer import DeviceTimer
from mlirt.runtime.plan_file import Plan

_X = np.ones((2, 4), np.float32)


def plan(calls: int, change: Any = None) -> Plan:
    """Three launches for each call."""

    def repeated(manifest: dict[str, Any]) -> None:
        manifest["launches"] = manifest["launches"] * calls
        for buffer in manifest["buffers"]:
            buffer.pop("first", None)
            buffer.pop("last", None)
        if change is not None:
            change(manifest)

    return cuda_plan(tiny_parts, repeated)


def measured(*plans: Plan) -> tuple[list[float], FakeDriver]:
    driver = FakeDriver()
    timer = DeviceTimer(driver, "sm_90a", 7)
    return timer.times(plans, [[_X.shape]] * len(plans), [[_X]] * len(plans)), driver


def test_times_are_microseconds() -> None:
    times, _ = measured(plan(1), plan(2))
    assert times == [3000.0, 6000.0]


def test_a_plan_that_cannot_run_takes_forever() -> None:
    def unknown(manifest: dict[str, Any]) -> None:
        manifest["kernels"][0]["symbol"] = "nowhere"

    times, driver = measured(plan(1, unknown), plan(1))
    assert times == [inf, 3000.0]
    assert driver.captured is None


def test_who_is_far_behind_is_measured_once() -> None:
    times, driver = measured(plan(1), plan(4))
    assert times == [3000.0, 12000.0]
    fast, slow = driver.replays.values()
    assert fast > slow + 3


def test_nothing_is_measured_at_no_cost() -> None:
    assert measured()[0] == []
