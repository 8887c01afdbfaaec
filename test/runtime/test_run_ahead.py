"""One run is queued ahead, against the stand-in for the driver (tensorrt-features.md#30.6)."""

from __future__ import annotations

import numpy as np
import pytest
from fake_driver import FakeDriver, Maker, cuda_plan

from mlirt.errors import InvalidInputError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cpu import CpuDevice
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.plan_file import make_plan
from mlirt.runtime.run_ahead import RunAhead

X = np.ones((3, 4), np.float32)


class Watched(FakeDriver):
    """Notes graphs that are queued and streams that are waited for, by the number of the context."""

    def __init__(self) -> None:
        super().__init__()
        self.log: list[str] = []
        self.waits: list[tuple[int, int]] = []

    def replay(self, graph: int, stream: int) -> None:
        self.log.append(f"queue {self.streams.index(stream)}")
        super().replay(graph, stream)

    def synchronize(self, stream: int) -> None:
        super().synchronize(stream)
        if stream in self.streams:
            self.log.append(f"wait {self.streams.index(stream)}")

    def wait(self, stream: int, event: int) -> None:
        self.waits.append((stream, event))


def ahead(tiny: Maker, driver: FakeDriver, *, resident: bool) -> tuple[RunAhead, list[ExecutionContext]]:
    plan = cuda_plan(tiny)
    device = CudaDevice(plan, driver)
    contexts = [ExecutionContext(plan.manifest, device.session()) for _ in range(2)]
    return RunAhead(contexts, {"x": X}, resident=resident), contexts


@pytest.mark.parametrize("resident", [False, True])
def test_the_order(tiny: Maker, resident: bool) -> None:
    """Runs 0 and 1 are queued, 0 is waited for, 2 is queued; the two contexts take turns."""
    driver = Watched()
    runs, _ = ahead(tiny, driver, resident=resident)
    driver.log.clear()
    found = [runs() for _ in range(4)]
    order = [entry for entry, before in zip(driver.log, ["", *driver.log], strict=False) if entry != before]
    assert order == ["queue 0", "queue 1", "wait 0", "queue 0", "wait 1", "queue 1", "wait 0", "queue 0", "wait 1"]
    found += runs.drain()
    assert driver.log[-1] == "wait 0"
    assert len(found) == 5
    assert runs.drain() == []


def test_kernels_wait_for_those_of_the_run_before(tiny: Maker) -> None:
    """By the event behind them, of the other context."""
    driver = Watched()
    runs, contexts = ahead(tiny, driver, resident=False)
    driver.waits.clear()
    runs()
    runs()
    programs = [context.uploaded({"x": X})[0] for context in contexts]
    first, second = (getattr(program, "computed") for program in programs)
    assert [event for _, event in driver.waits] == [first, second]
    assert driver.waits[0][0] == driver.streams[1]


def test_times_and_results(tiny: Maker) -> None:
    driver = FakeDriver()
    runs, contexts = ahead(tiny, driver, resident=False)
    for _ in range(3):
        times = runs()
        assert times.end_h2d - times.start_h2d == 1
        assert times.end_compute - times.start_compute == 3
        assert times.end_d2h - times.start_d2h == 2
        assert times.start_enqueue <= times.end_enqueue
    runs.drain()
    for context in contexts:
        np.testing.assert_allclose(context.run({"x": X})["y"], np.cos(np.full((3, 4), 3)), rtol=1e-6)


def test_a_cpu_has_no_queue(tiny: Maker) -> None:
    parts = tiny()
    plan = make_plan(parts.manifest, parts.sections, parts.weights)
    context = ExecutionContext(plan.manifest, CpuDevice(plan).session())
    assert not context.can_run_ahead
    with pytest.raises(InvalidInputError, match="on a GPU alone"):
        RunAhead([context], {"x": X}, resident=False)
