"""Runs on a caller's device memory without copies: which tensors stay where they are, and what comes after what."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, cuda_plan

from mlirt.runtime.caller_memory import KEPT_GRAPHS
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice

Maker = Callable[[], Any]
ROWS = 64


@dataclass
class Watched(FakeDriver):
    """Notes copies on the device, and what each stream is told in order."""

    copies: list[int] = field(default_factory=list[int])
    told: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def copy_on_device(self, to: int, source: int, size: int, stream: int) -> None:
        self.copies.append(size)
        super().copy_on_device(to, source, size, stream)

    def replay(self, graph: int, stream: int) -> None:
        self.told.append(("replay", stream))
        super().replay(graph, stream)

    def wait(self, stream: int, event: int) -> None:
        self.told.append(("wait", stream))


def dense(count: int, offset: int = 0) -> np.ndarray:
    """So many float32 whose address is a multiple of 256, and `offset` bytes."""
    block = np.zeros(4 * count + 512, np.uint8)
    start = -block.ctypes.data % 256 + offset
    return block[start : start + 4 * count].view(np.float32)


class Caller:
    """A context, its driver, and tensors of a caller for it."""

    def __init__(self, tiny: Maker, change: Callable[[dict[str, Any]], None] | None = None) -> None:
        def both(manifest: dict[str, Any]) -> None:
            manifest["buffers"][4] = {"kind": "output", "bytes": 32}
            for kernel in manifest["kernels"]:
                kernel["written"] = [1]
            if change:
                change(manifest)

        plan = cuda_plan(tiny, both)
        self.driver = Watched()
        session = CudaDevice(plan, self.driver).session()
        self.own_stream = session.stream
        self.context = ExecutionContext(plan.manifest, session)
        self.stream = self.driver.new_stream()

    def run(self, x: np.ndarray, y: np.ndarray, z: np.ndarray, stream: int | None = None) -> int:
        """The copies that a run takes, after its results have been compared."""
        before = len(self.driver.copies)
        x[:] = np.random.default_rng(before).standard_normal(x.size, np.float32)
        wanted = np.cos((2 * x + 1)[::-1])
        at = self.stream if stream is None else stream
        assert self.context.run_at([(x.size // 4, 4)], [x.ctypes.data], [y.ctypes.data, z.ctypes.data], at)
        np.testing.assert_allclose(y, wanted, rtol=1e-5, atol=1e-6)
        np.testing.assert_array_equal(z, np.arange(8, dtype=np.float32) + 0.5)
        return len(self.driver.copies) - before


@pytest.fixture
def caller(tiny: Maker) -> Caller:
    return Caller(tiny)


def tensors(offset: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return dense(ROWS * 4, offset), dense(ROWS * 4, offset), dense(8, offset)


def test_addresses_that_come_again_are_not_copied(caller: Caller) -> None:
    given = tensors()
    assert caller.run(*given) == 3
    assert [caller.run(*given) for _ in range(4)] == [0] * 4
    with_plain_run = [caller.run(*given), caller.context.run({"x": given[0].reshape(-1, 4)}), caller.run(*given)]
    assert with_plain_run[::2] == [0, 0]


def test_the_callers_stream_runs_the_graph_and_waits_for_what_the_context_did_before(caller: Caller) -> None:
    driver, given, own = caller.driver, tensors(), caller.own_stream
    for _ in range(2):
        caller.run(*given)
    other = driver.new_stream()

    def told(run: Callable[[], object]) -> list[tuple[str, int]]:
        driver.told.clear()
        run()
        return list(driver.told)

    here = [("replay", caller.stream), ("wait", own)]
    assert told(lambda: caller.run(*given)) == here
    assert told(lambda: caller.run(*given, other)) == [("wait", other), ("replay", other), ("wait", own)]
    assert told(lambda: caller.run(*given)) == [("wait", caller.stream), *here]
    caller.context.run({"x": given[0].reshape(-1, 4)})
    assert told(lambda: caller.run(*given)) == [("wait", caller.stream), *here]
    assert told(lambda: caller.run(*given, 0))[1] == ("replay", 0)  # the legacy default stream is one, too


def test_what_does_not_fit_as_it_is_is_copied(caller: Caller) -> None:
    askew = tensors(16)
    assert [caller.run(*askew) for _ in range(3)] == [3, 3, 3]
    x, y, z = dense(ROWS * 4), dense(ROWS * 4, 64), dense(8)
    assert [caller.run(x, y, z) for _ in range(3)] == [3, 1, 1]


def test_results_in_place_of_inputs(caller: Caller) -> None:
    """A kernel may read the input after another one has written the output."""
    x, z = dense(ROWS * 4), dense(8)
    assert [caller.run(x, x, z) for _ in range(3)] == [3, 1, 1]


def test_an_input_that_a_kernel_writes_stays_as_it_was(tiny: Maker) -> None:
    def in_place(manifest: dict[str, Any]) -> None:
        first = manifest["launches"][0]["args"]
        buffers = {one["buffer"] for launch in manifest["launches"][1:] for one in launch["args"] if "buffer" in one}
        inner = first[1]["buffer"]
        assert inner in buffers
        for launch in manifest["launches"]:
            for one in launch["args"]:
                if one.get("buffer") == inner:
                    one["buffer"] = manifest["inputs"][0]["buffer"]

    caller = Caller(tiny, in_place)
    x, y, z = tensors()
    for _ in range(3):
        caller.run(x, y, z)
        np.testing.assert_allclose(np.cos((2 * x + 1)[::-1]), y, rtol=1e-5, atol=1e-6)


def test_only_the_last_graphs_are_kept(caller: Caller) -> None:
    driver = caller.driver
    caller.run(*tensors())
    before = len(driver.graphs)
    several = [tensors() for _ in range(2 * KEPT_GRAPHS)]
    for _ in range(3):
        for given in several:
            caller.run(*given)
    assert len(driver.graphs) == before + KEPT_GRAPHS
    del caller.context
    assert not driver.graphs
    assert not driver.memory


def test_a_graph_of_the_caller_has_no_copies(caller: Caller) -> None:
    driver, given = caller.driver, tensors()
    driver.capturing.add(caller.stream)
    assert caller.run(*given) == 0
    driver.capturing.clear()
    assert caller.run(*given) == 3
