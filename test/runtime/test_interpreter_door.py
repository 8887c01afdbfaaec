"""Who comes back from kernels looks at the door before it waits for the interpreter's lock, but not for ever."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mlirt.runtime import python_callers
from mlirt.runtime.cpu import CpuDevice
from mlirt.runtime.cpu_job import Job
from mlirt.runtime.engine import Engine
from mlirt.runtime.interpreter_door import interpreter_door
from mlirt.runtime.plan_file import Plan, plan_bytes, read_plan
from mlirt.runtime.python_callers import PythonCallers

Maker = Callable[[], Any]
_SOMEBODY = 12345
_LONG = 1 << 40


def plan_of(parts: Any) -> Plan:
    return read_plan(plan_bytes(parts.manifest, parts.sections, parts.weights))


class Door:
    """A door of its own, and a caller with a table of no rows."""

    def __init__(self, parts: Any, most: int) -> None:
        device = CpuDevice(plan_of(parts))
        self.device = device  # whose code it is
        self.words = (ctypes.c_int64 * 3)(0, most, most)
        self.job = Job(0, 0, ctypes.addressof(self.words))
        self.caller = device.on_caller

    def run(self) -> None:
        assert self.caller.native(self.job.address) == 0


def test_a_caller_closes_it_when_kernels_are_done_and_opens_it_for_others(tiny: Maker) -> None:
    door = Door(tiny(), 1000)
    door.run()
    assert door.words[0] == door.job.address
    other = Job(0, 0, ctypes.addressof(door.words))
    thread = threading.Thread(target=lambda: door.caller.native(other.address))
    door.words[1] = door.words[2] = _LONG
    thread.start()
    time.sleep(0.05)
    assert thread.is_alive()
    assert door.words[0] == door.job.address
    # The other one has read how long it may look; who comes now gives up, and is no more patient for its success.
    door.words[1] = door.words[2] = 1000
    door.caller.native(door.job.address)  # opens it, and is let in before the other one, or after it
    door.words[0] = 0
    thread.join(30)
    assert not thread.is_alive()


def test_nobody_waits_for_ever_and_less_each_time(tiny: Maker) -> None:
    door = Door(tiny(), 800)
    door.words[0] = _SOMEBODY
    door.run()
    assert (door.words[0], door.words[1]) == (door.job.address, 700)
    door.run()
    assert door.words[1] == 800  # it was open: the wait is worth more again, up to the most


def test_who_was_overtaken_does_not_open_it(tiny: Maker) -> None:
    door = Door(tiny(), 8)
    door.words[0] = _SOMEBODY
    door.words[1] = _LONG
    thread = threading.Thread(target=door.run)
    thread.start()
    time.sleep(0.05)
    assert door.words[0] == _SOMEBODY
    door.words[0] = 0
    thread.join(30)
    assert door.words[0] == door.job.address


def test_runs_that_keep_the_interpreter_pass_by(tiny: Maker) -> None:
    door = Door(tiny(), 1000)
    door.words[0] = _SOMEBODY
    assert door.caller.brief(door.job.brief_address) == 0
    assert list(door.words) == [_SOMEBODY, 1000, 1000]


def test_a_process_has_one_door(tiny: Maker) -> None:
    assert CpuDevice(plan_of(tiny())).door == CpuDevice(plan_of(tiny())).door == interpreter_door(lambda: 1.0) != 0


def test_callers_are_many_while_others_have_run_lately(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1]
    monkeypatch.setattr(python_callers, "get_ident", lambda: now[0])
    callers = PythonCallers()
    callers.come()
    callers.come()
    assert not callers.are_many
    now[0] = 2
    callers.come()
    assert callers.are_many
    for _ in range(999):
        callers.come()
        assert callers.are_many
    callers.come()
    assert not callers.are_many


def test_results_beside_others_are_the_same(tiny: Maker) -> None:
    engine = Engine(plan_of(tiny()), threads=2, streams=2)
    inputs = [np.random.default_rng(rows).standard_normal((rows, 4), np.float32) for rows in (5, 700, 3000)]
    expected = [engine.run({"x": x})["y"].tobytes() for x in inputs]
    found: list[bool] = []

    def work(x: np.ndarray, bits: bytes) -> None:
        found.extend([engine.run({"x": x})["y"].tobytes() == bits for _ in range(300)])

    threads = [threading.Thread(target=work, args=pair) for pair in zip(inputs, expected, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 900
