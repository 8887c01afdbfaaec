"""The CUDA runtime against a driver that keeps device memory on the host and runs Python functions as kernels."""

import ctypes
import math
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, Maker, cuda_plan

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.cuda_driver import CudaDriver, driver_of, open_driver
from mlirt.runtime.driver_interface import DeviceError
from mlirt.runtime.lent_memory import AllocatedBlock, ContextMemory, LentBlock
from mlirt.runtime.plan_file import Plan
from mlirt.runtime.tensor_maps import MapLayout


def context_of(plan: Plan, driver: FakeDriver) -> ExecutionContext:
    return ExecutionContext(plan.manifest, CudaDevice(plan, driver).session())


def test_results_for_several_shapes(tiny: Maker) -> None:
    driver = FakeDriver()
    context = context_of(cuda_plan(tiny), driver)
    for n in (3, 1, 100, 3, 1, 7, 8, 9, 10, 3):
        x = np.random.default_rng(n).standard_normal((n, 4), np.float32)
        got = context.run({"x": x})
        np.testing.assert_allclose(got["y"], np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(n, 4), rtol=1e-6)
        np.testing.assert_array_equal(got["z"], np.arange(8, dtype=np.float32) + 0.5)
    assert len(driver.graphs) == 7
    assert driver.shared == {"scale": 65536, "reverse": 0}
    assert ("reverse", (3, 1, 1), (32, 4, 1), 0) in driver.launches


def test_blocks_that_are_outgrown_count(tiny: Maker) -> None:
    plan, driver = cuda_plan(tiny), FakeDriver()
    context = ExecutionContext(plan.manifest, CudaDevice(plan, driver).session(), shape_cache_mb=1)
    for n in range(100, 2100, 100):
        context.run({"x": np.ones((n, 4), np.float32)})
    assert context.shape_cache.programs > 4
    assert context.shape_cache.bytes > context.shape_cache.programs * 8192 * 3
    for n in range(20_000, 120_000, 20_000):
        context.run({"x": np.ones((n, 4), np.float32)})
    assert context.shape_cache.programs == 1
    for n in (100, 200, 300, 100):
        context.run({"x": np.ones((n, 4), np.float32)})
    assert context.shape_cache.programs == 4
    assert context.shape_cache.bytes == 4 * 8192 * 3


def test_launches_with_an_empty_grid_are_skipped(tiny: Maker) -> None:
    driver = FakeDriver()
    got = context_of(cuda_plan(tiny), driver).run({"x": np.zeros((0, 4), np.float32)})
    assert got["y"].shape == (0, 4)
    assert driver.launches == []


def test_all_memory_comes_back(tiny: Maker) -> None:
    driver = FakeDriver()
    context = context_of(cuda_plan(tiny), driver)
    for n in range(1, 9):
        context.run({"x": np.ones((n, 4), np.float32)})
    del context
    assert driver.memory == {}
    assert driver.graphs == {}
    assert (driver.modules, driver.streams, driver.events) == ([], [], [])


class Lender:
    """Memory of the driver for an engine and its contexts, with a note of what is out."""

    def __init__(self, driver: FakeDriver) -> None:
        self.driver = driver
        self.out: dict[int, int] = {}

    def take(self, size: int) -> int:
        address = self.driver.allocate(size)
        self.out[address] = size
        return address

    def give_back(self, address: int) -> None:
        self.out.pop(address)
        self.driver.free(address)


@pytest.mark.parametrize("is_all", [True, False])
def test_memory_is_lent(tiny: Maker, is_all: bool) -> None:
    """tensorrt-features.md#13.13, 18.1 with a stand-in for the driver: the arena, or all memory, is another one's."""
    plan, driver = cuda_plan(tiny), FakeDriver()
    lender = Lender(driver)
    arenas: list[int] = []

    def arena(size: int) -> LentBlock:
        arenas.append(size)
        return AllocatedBlock(lender, size)

    def rest(size: int) -> LentBlock:
        return AllocatedBlock(lender, size)

    device = CudaDevice(plan, driver, lender if is_all else None)
    context = ExecutionContext(plan.manifest, device.session(ContextMemory(arena, rest if is_all else None)))
    for n in (3, 100, 3):
        x = np.random.default_rng(n).standard_normal((n, 4), np.float32)
        got = context.run({"x": x})
        np.testing.assert_allclose(got["y"], np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(n, 4), rtol=1e-6)
        context.others_have_used_the_memory()
    assert len(arenas) == 2
    assert arenas[0] < arenas[1]
    assert len(lender.out) >= (3 if is_all else 1)
    own = {size for address, size in lender.out.items() if address in driver.memory}
    assert own
    del context, device
    assert not lender.out
    assert driver.memory == {}


def test_launches_one_by_one(tiny: Maker) -> None:
    """tensorrt-features.md#13.19, 17.10: each layer has what surrounds it, and results are as those of a run."""
    context = context_of(cuda_plan(tiny), FakeDriver())
    layers: list[str] = []

    @contextmanager
    def around(layer: str) -> Generator[None]:
        layers.append(layer)
        yield

    x = np.random.default_rng(0).standard_normal((5, 4), np.float32)
    got, expected = context.run_launch_by_launch({"x": x}, around), context.run({"x": x})
    assert layers == [launch.layer for launch in cuda_plan(tiny).manifest.launches]
    for name, array in expected.items():
        np.testing.assert_array_equal(got[name], array)


def test_an_event_says_that_the_inputs_are_read(tiny: Maker) -> None:
    driver = FakeDriver()
    context = context_of(cuda_plan(tiny), driver)
    event = driver.new_event()
    assert context.set_input_consumed_event(event)
    copied = driver.time + 1
    context.run({"x": np.ones((2, 4), np.float32)})
    assert driver.stamps[event] == copied
    context.set_input_consumed_event(None)
    context.run({"x": np.ones((2, 4), np.float32)})
    assert driver.stamps[event] == copied


def test_code_is_loaded_when_it_is_needed(tiny: Maker) -> None:
    """tensorrt-features.md#13.24 with a stand-in: kernels that no launch of the shapes needs are not loaded."""
    eager, driver = FakeDriver(), FakeDriver(is_lazy=True)
    at_once, device = CudaDevice(cuda_plan(tiny), eager), CudaDevice(cuda_plan(tiny), driver)
    assert at_once.loaded_modules == len(eager.modules) == 1  # both kernels are in it
    assert eager.functions == ["scale", "reverse"]
    assert device.loaded_modules == len(driver.modules) == 0
    assert driver.functions == []
    x = np.ones((2, 4), np.float32)
    got = ExecutionContext(device.manifest, device.session()).run({"x": x})
    np.testing.assert_allclose(got["y"], np.cos(np.full((2, 4), 3)), rtol=1e-6)
    assert device.loaded_modules == len(driver.modules) == 1
    del device
    assert driver.modules == []


def test_damaged_code_that_is_loaded_late_is_told_by_the_first_run(tiny: Maker) -> None:
    plan = cuda_plan(tiny, lambda manifest: manifest["kernels"][1].update(symbol="nowhere"))
    device = CudaDevice(plan, FakeDriver(is_lazy=True))
    with pytest.raises(PlanError, match="kernel 'reverse' cannot be loaded"):
        ExecutionContext(plan.manifest, device.session()).run({"x": np.ones((2, 4), np.float32)})


def test_the_device_that_is_current_stays_so(tiny: Maker) -> None:
    """tensorrt-features.md#13.22 with a stand-in: an engine works on its device, whichever is current."""
    driver = FakeDriver(ordinal=1)
    current: set[int] = set()
    queue = driver.queue

    def watched(work: Callable[[], object]) -> None:
        current.add(driver.current)
        queue(work)

    driver.queue = watched
    context = context_of(cuda_plan(tiny), driver)
    x, y, z = np.ones((2, 4), np.float32), np.empty((2, 4), np.float32), np.empty(8, np.float32)
    assert driver.current == 0
    context.run({"x": x})
    context.run_at([x.shape], [x.ctypes.data], [y.ctypes.data, z.ctypes.data], 7)
    context.run_timed({"x": x})
    context.run_resident({"x": x}).execute()
    context.profile({"x": x})
    del context
    assert driver.current == 0
    assert current == {1}
    assert driver.memory == {}


def copied(shape: tuple[int, ...]) -> np.ndarray:
    """Floats at an address where kernels do not read and write: blocks of a device begin at multiples of 256."""
    block = np.empty(512 + 4 * math.prod(shape), np.uint8)
    start = -block.ctypes.data % 256 + 16
    return block[start : start + 4 * math.prod(shape)].view(np.float32).reshape(shape)


def test_a_run_in_a_graph_of_the_caller_keeps_its_memory(tiny: Maker) -> None:
    """tensorrt-features.md#13.16 with a stand-in: the block stays when larger shapes need another one, and borders are
    written by each run from then on.
    """

    def with_halo(manifest: dict[str, Any]) -> None:
        size = ["+", ["*", "n", 16], 64]
        manifest["buffers"].append({"kind": "arena", "bytes": size, "first": 0, "last": 3, "halo": "h"})

    plan, driver = cuda_plan(tiny, with_halo), FakeDriver()
    context = ExecutionContext(plan.manifest, CudaDevice(plan, driver).session(), shape_cache_mb=0)
    stream = driver.new_stream()
    x, y, z = copied((2, 4)), copied((2, 4)), copied((8,))
    x[:] = 1

    def run(context: ExecutionContext) -> int:
        before = driver.time
        assert context.run_at([x.shape], [x.ctypes.data], [y.ctypes.data, z.ctypes.data], stream)
        return driver.time - before

    first = run(context)
    assert run(context) == first - 1  # the border stays as it is
    driver.capturing.add(stream)
    run(context)
    driver.capturing.clear()
    assert run(context) == first
    held = set(driver.memory)
    context.run({"x": np.ones((5000, 4), np.float32)})
    context.run({"x": np.ones((9000, 4), np.float32)})
    assert len(held & set(driver.memory)) >= 2  # the weights, and the block that the graph has addresses of
    del context
    assert driver.memory == {}


def test_decisions_are_not_captured(tiny: Maker) -> None:
    """tensorrt-features.md#7.20 with a stand-in: refused before anything is queued, and the next run is right."""

    def with_branch(manifest: dict[str, Any]) -> None:
        manifest["buffers"].append({"kind": "input", "bytes": 1})
        place: dict[str, Any] = {"name": "c", "dtype": "bool", "shape": [], "buffer": len(manifest["buffers"]) - 1}
        manifest["inputs"].append(place)
        manifest["program"] = [{"if": {"buffer": place["buffer"]}, "then": [0, 1], "else": []}, 2]

    driver = FakeDriver()
    context = context_of(cuda_plan(tiny, with_branch), driver)
    stream = driver.new_stream()
    x, c = np.ones((2, 4), np.float32), np.array(True)
    y, z = np.empty((2, 4), np.float32), np.empty(8, np.float32)
    addresses = [x.ctypes.data, c.ctypes.data], [y.ctypes.data, z.ctypes.data]
    driver.capturing.add(stream)
    before = driver.time
    with pytest.raises(InvalidInputError, match="cudaErrorStreamCaptureUnsupported"):
        context.run_at([x.shape, ()], *addresses, stream)
    assert driver.time == before
    driver.capturing.clear()
    assert context.run_at([x.shape, ()], *addresses, stream)
    np.testing.assert_allclose(y, np.cos(np.full((2, 4), 3)), rtol=1e-6)


@pytest.mark.parametrize("fill", [0, 7])
def test_halos_are_filled(tiny: Maker, fill: int) -> None:
    def with_halo(manifest: dict[str, Any]) -> None:
        size = ["+", ["*", "n", 16], 64]
        manifest["buffers"].append({"kind": "arena", "bytes": size, "first": 0, "last": 3, "halo": "h", "fill": fill})
        manifest["launches"][0]["args"][1] = {"buffer": 5}
        manifest["launches"][1]["args"][0] = {"buffer": 5}
        shape = [["+", ["*", "n", 4], 16]]
        manifest["outputs"].append({"name": "all", "dtype": "float32", "shape": shape, "buffer": 5})

    context = context_of(cuda_plan(tiny, with_halo), FakeDriver())
    for n in (2, 50, 2, 50):
        got = context.run({"x": np.ones((n, 4), np.float32)})["all"]
        assert got[: 4 * n].all()
        assert (got[4 * n :].view(np.uint8) == fill).all()


def test_times_and_profile(tiny: Maker) -> None:
    context = context_of(cuda_plan(tiny), FakeDriver())
    feeds = {"x": np.ones((2, 4), np.float32)}
    _, times = context.run_timed(feeds)
    assert times.end_h2d - times.start_h2d == 1
    assert times.end_compute - times.start_compute == 3
    assert times.end_d2h - times.start_d2h == 2
    resident = context.run_resident(feeds).execute()
    assert resident.end_compute - resident.start_compute == 3
    assert context.profile(feeds) == [("double", 1.0), ("turn", 1.0), ("weigh", 1.0)]


def test_kernels_are_passed_maps_of_tensors(tiny: Maker) -> None:
    def with_map(manifest: dict[str, Any]) -> None:
        kernel, launch = manifest["kernels"][1], manifest["launches"][1]
        kernel |= {"args": ["map", "ptr", "i32"], "dependent_launch": True, "cluster": 2}
        launch["args"][0] = {
            "map": {
                **{"buffer": launch["args"][0]["buffer"], "element": "float32", "sizes": ["n", 4], "steps": [16, 4]},
                **{"box": [8, 4], "swizzle": 0, "tf32": True},
            }
        }

    driver = FakeDriver()
    context = context_of(cuda_plan(tiny, with_map), driver)
    x = np.ones((5, 4), np.float32)
    assert context.run({"x": x})["y"].shape == (5, 4)
    ((layout, address),) = driver.maps
    assert layout == MapLayout("float32", (5, 4), (16, 4), (8, 4), 0, tf32=True)
    assert address % 16 == 0
    assert driver.dependent.count(True) == 1


def test_blocks_that_wait_for_each_other_are_launched_together(tiny: Maker) -> None:
    def cooperative(manifest: dict[str, Any]) -> None:
        manifest["kernels"][1]["cooperative"] = True

    driver = FakeDriver()
    context_of(cuda_plan(tiny, cooperative), driver).run({"x": np.ones((5, 4), np.float32)})
    assert driver.cooperative.count(True) == 1


def test_a_map_beyond_its_buffer_is_refused(tiny: Maker) -> None:
    def with_map(manifest: dict[str, Any]) -> None:
        manifest["kernels"][1] |= {"args": ["map", "ptr", "i32"]}
        shape = {"sizes": ["n", 4], "steps": [32, 4], "box": [8, 4], "element": "float32"}
        manifest["launches"][1]["args"][0] = {"map": {"buffer": 1, **shape}}

    context = context_of(cuda_plan(tiny, with_map), FakeDriver())
    with pytest.raises(PlanError, match=r"argument 0: \(5, 4\) is no tensor in the 80 bytes of its buffer"):
        context.run({"x": np.ones((5, 4), np.float32)})


def test_a_map_of_an_empty_tensor_is_one_of_which_nothing_is_copied(tiny: Maker) -> None:
    """A device knows no tensors without elements, and a kernel that sums up none copies none."""

    def with_map(manifest: dict[str, Any]) -> None:
        manifest["kernels"][1] |= {"args": ["map", "ptr", "i32"]}
        size = ["-", "n", 5]
        shape = {"sizes": [64, size], "steps": [["*", 2, size], 2], "box": [8, 8], "element": "float16"}
        manifest["launches"][1]["args"][0] = {"map": {"buffer": 1, **shape}}

    driver = FakeDriver()
    context_of(cuda_plan(tiny, with_map), driver).run({"x": np.ones((5, 4), np.float32)})
    ((layout, address),) = driver.maps
    assert (layout.sizes, layout.steps) == ((1, 1), (16, 16))
    assert address % 16 == 0


def test_a_kernel_that_is_not_there_is_named(tiny: Maker) -> None:
    plan = cuda_plan(tiny, lambda manifest: manifest["kernels"][1].update(symbol="nowhere"))
    with pytest.raises(PlanError, match="kernel 'reverse' cannot be loaded"):
        CudaDevice(plan, FakeDriver())


class Refusing:
    """A libcuda that starts with an error, or without devices."""

    def __init__(self, status: int) -> None:
        self._status = status

    def __getattr__(self, name: str) -> Any:
        status = self._status

        class Function:
            argtypes: Any = None
            restype: Any = None

            def __call__(self, *args: Any) -> int:
                return status

        self.__dict__[name] = Function()
        return self.__dict__[name]


def test_a_driver_that_refuses_is_named() -> None:
    with pytest.raises(DeviceError, match=r"CUDA: cuInit: unknown error \(999\)"):
        CudaDriver(Refusing(999))
    with pytest.raises(PlanError, match="no CUDA device; build it for the CPU"):
        CudaDriver(Refusing(0))


def test_a_machine_without_a_driver_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str, mode: int = 0) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)
    driver_of.cache_clear()
    with pytest.raises(PlanError, match=r"no CUDA driver \(libcuda\) is here; build it for the CPU"):
        open_driver()
    driver_of.cache_clear()


def test_run_on_memory_of_the_device(tiny: Maker) -> None:
    driver = FakeDriver()
    context = context_of(cuda_plan(tiny), driver)
    event = driver.new_event()
    assert context.set_input_consumed_event(event)
    stream = driver.new_stream()
    for n in (3, 1, 3):
        x = np.random.default_rng(n).standard_normal((n, 4), np.float32)
        y, z = np.empty_like(x), np.empty(8, np.float32)
        before = driver.time
        assert context.run_at([x.shape], [x.ctypes.data], [y.ctypes.data, z.ctypes.data], stream)
        np.testing.assert_allclose(y, np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(n, 4), rtol=1e-6)
        np.testing.assert_array_equal(z, np.arange(8, dtype=np.float32) + 0.5)
        assert before < driver.stamps[event] < driver.time
    with pytest.raises(InvalidInputError, match="expected shape"):
        context.run_at([(3, 5)], [0], [0, 0], stream)


def test_each_run_has_its_number(tiny: Maker) -> None:
    """Whether the caller's arrays are on the host or on the device; no caller sees the input."""

    def count_runs(manifest: dict[str, Any]) -> None:
        manifest["buffers"].append({"kind": "input", "bytes": 8})
        number: dict[str, Any] = {"name": "run", "dtype": "int64", "shape": [], "buffer": len(manifest["buffers"]) - 1}
        manifest["inputs"].append(number | {"counts_runs": True})
        manifest["outputs"].append(number | {"name": "number"})

    driver = FakeDriver()
    plan = cuda_plan(tiny, count_runs)
    device = CudaDevice(plan, driver)
    context = ExecutionContext(plan.manifest, device.session())
    x = np.ones((2, 4), np.float32)
    given = [np.empty(count, kind) for count, kind in ((8, np.float32), (8, np.float32), (1, np.int64))]
    for run in (0, 2, 4):
        assert context.run({"x": x})["number"] == run
        assert context.run_at([x.shape], [x.ctypes.data], [one.ctypes.data for one in given], driver.new_stream())
        assert given[2] == run + 1
    assert ExecutionContext(plan.manifest, device.session()).run({"x": x})["number"] == 0
