"""The CUDA runtime against a driver that keeps device memory on the host and runs Python functions as kernels."""

import ctypes
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from mlirt.errors import PlanError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice, choose_architecture
from mlirt.runtime.cuda_driver import CudaDriver, DeviceError, open_driver
from mlirt.runtime.plan_file import Plan, make_plan
from mlirt.runtime.tensor_maps import EncodedMap, MapLayout

Maker = Callable[[], Any]


def floats(address: int, count: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address)) if count else np.empty(0, np.float32)


def scale(x: int, y: int, count: int, factor: float, addend: float) -> None:
    floats(y, count)[:] = floats(x, count) * np.float32(factor) + np.float32(addend)


def reverse(x: int, y: int, count: int) -> None:
    floats(y, count)[:] = np.cos(floats(x, count)[::-1])


KERNELS: dict[str, tuple[Callable[..., None], list[Any]]] = {
    "scale": (scale, [*[ctypes.c_uint64] * 2, ctypes.c_int64, ctypes.c_double, ctypes.c_float]),
    "reverse": (reverse, [*[ctypes.c_uint64] * 2, ctypes.c_int32]),
}


@dataclass
class FakeDriver:
    """Streams run at once; captured work runs at replay; what is freed or unknown is an error."""

    capability: tuple[int, int] = (9, 0)
    memory: dict[int, Any] = field(default_factory=dict[int, Any])
    functions: list[str] = field(default_factory=list[str])
    shared: dict[str, int] = field(default_factory=dict[str, int])
    captured: list[Callable[[], object]] | None = None
    graphs: dict[int, list[Callable[[], object]]] = field(default_factory=dict[int, list[Callable[[], object]]])
    launches: list[tuple[str, Any, Any, int]] = field(default_factory=list[tuple[str, Any, Any, int]])
    maps: list[tuple[MapLayout, int]] = field(default_factory=list[tuple[MapLayout, int]])
    dependent: list[bool] = field(default_factory=list[bool])
    time: int = 0
    stamps: dict[int, int] = field(default_factory=dict[int, int])
    handles: int = 100

    def activate(self) -> None: ...

    def describe(self) -> str:
        return "fake device"

    def compute_capability(self) -> tuple[int, int]:
        return self.capability

    def allocate(self, size: int) -> int:
        block = np.full(max(size, 1) + 256, 0xAB, np.uint8)
        address = block.ctypes.data + (-block.ctypes.data % 256)
        self.memory[address] = block
        return address

    def free(self, address: int) -> None:
        del self.memory[address]

    allocate_pinned, free_pinned = allocate, free

    def load_function(self, cubin: bytes, symbol: str, shared_bytes: int) -> int:
        if symbol not in KERNELS:
            raise DeviceError("CUDA: cuModuleGetFunction: not found")
        self.functions.append(symbol)
        self.shared[symbol] = shared_bytes
        return len(self.functions) - 1

    def new_stream(self) -> int:
        self.handles += 1
        return self.handles

    new_event = new_stream

    def _queue(self, work: Callable[[], object]) -> None:
        if self.captured is None:
            self.time += 1
            work()
        else:
            self.captured.append(work)

    def copy_to_device(self, device: int, host: int, size: int, stream: int) -> None:
        self._queue(lambda: ctypes.memmove(device, host, size))

    def copy_to_host(self, host: int, device: int, size: int, stream: int) -> None:
        self._queue(lambda: ctypes.memmove(host, device, size))

    def zero(self, device: int, size: int, stream: int) -> None:
        self._queue(lambda: ctypes.memset(device, 0, size))

    def encode_map(self, layout: MapLayout, address: int) -> EncodedMap:
        self.maps.append((layout, address))
        return EncodedMap((address,))

    def launch(
        self,
        function: int,
        grid: Any,
        block: Any,
        shared_bytes: int,
        stream: int,
        args: Any,
        dependent: bool = False,
    ) -> None:
        name = self.functions[function]
        self.dependent.append(dependent)
        work, types = KERNELS[name]
        values = [kind.from_address(args[i]).value for i, kind in enumerate(types)]
        self.launches.append((name, grid, block, shared_bytes))
        self._queue(lambda: work(*values))

    def begin_capture(self, stream: int) -> None:
        self.captured = []

    def end_capture(self, stream: int) -> int:
        graph, self.captured = self.captured or [], None
        handle = self.new_stream()
        self.graphs[handle] = graph
        return handle

    def replay(self, graph: int, stream: int) -> None:
        for work in self.graphs[graph]:
            self._queue(work)

    def free_graph(self, graph: int) -> None:
        del self.graphs[graph]

    def wait(self, stream: int, event: int) -> None:
        """Work runs in the order in which it is queued, so that nothing is left to wait for."""

    def record(self, event: int, stream: int) -> None:
        self.stamps[event] = self.time

    def elapsed_ms(self, start: int, end: int) -> float:
        if end not in self.stamps:
            raise DeviceError("CUDA: cuEventElapsedTime: the event was never recorded")
        return float(self.stamps[end] - self.stamps[start])

    def synchronize(self, stream: int) -> None:
        assert self.captured is None


def cuda_plan(tiny: Maker, change: Callable[[dict[str, Any]], None] | None = None) -> Plan:
    """The tiny plan for CUDA: other argument types, grids, code for two architectures."""
    parts = tiny()
    manifest = parts.manifest
    manifest["target"] = {"kind": "cuda", "arch": "sm_90a"}
    manifest["main"] = None
    scale_kernel, reverse_kernel = manifest["kernels"]
    scale_kernel |= {
        "args": ["ptr", "ptr", "i64", "f64", "f32"],
        "object": {"sm_80": "scale.o", "sm_90a": "reverse.o"},
        "block": [128, 1, 1],
        "shared_bytes": 65536,
    }
    reverse_kernel |= {"args": ["ptr", "ptr", "i32"], "block": [32, 4, 1]}
    for launch in manifest["launches"]:
        launch["grid"] = ["n", 1, 1]
    if change:
        change(manifest)
    return make_plan(manifest, parts.sections, parts.weights)


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
    assert len(driver.graphs) <= 4
    assert driver.shared == {"scale": 65536, "reverse": 0}
    assert ("reverse", (3, 1, 1), (32, 4, 1), 0) in driver.launches


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


def test_halos_are_zero(tiny: Maker) -> None:
    def with_halo(manifest: dict[str, Any]) -> None:
        size = ["+", ["*", "n", 16], 64]
        manifest["buffers"].append({"kind": "arena", "bytes": size, "first": 0, "last": 3, "halo": "h"})
        manifest["launches"][0]["args"][1] = {"buffer": 5}
        manifest["launches"][1]["args"][0] = {"buffer": 5}
        shape = [["+", ["*", "n", 4], 16]]
        manifest["outputs"].append({"name": "all", "dtype": "float32", "shape": shape, "buffer": 5})

    context = context_of(cuda_plan(tiny, with_halo), FakeDriver())
    for n in (2, 50, 2, 50):
        got = context.run({"x": np.ones((n, 4), np.float32)})["all"]
        assert got[: 4 * n].all()
        assert not got[4 * n :].any()


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
                **{"box": [8, 4], "swizzle": 0},
            }
        }

    driver = FakeDriver()
    context = context_of(cuda_plan(tiny, with_map), driver)
    x = np.ones((5, 4), np.float32)
    assert context.run({"x": x})["y"].shape == (5, 4)
    ((layout, address),) = driver.maps
    assert layout == MapLayout("float32", (5, 4), (16, 4), (8, 4), 0)
    assert address % 16 == 0
    assert driver.dependent.count(True) == 1


def test_a_map_beyond_its_buffer_is_refused(tiny: Maker) -> None:
    def with_map(manifest: dict[str, Any]) -> None:
        manifest["kernels"][1] |= {"args": ["map", "ptr", "i32"]}
        shape = {"sizes": ["n", 4], "steps": [32, 4], "box": [8, 4], "element": "float32"}
        manifest["launches"][1]["args"][0] = {"map": {"buffer": 1, **shape}}

    context = context_of(cuda_plan(tiny, with_map), FakeDriver())
    with pytest.raises(PlanError, match=r"argument 0: \(5, 4\) is no tensor in the 80 bytes of its buffer"):
        context.run({"x": np.ones((5, 4), np.float32)})


@pytest.mark.parametrize(
    ("offered", "capability", "chosen"),
    [
        (["sm_80", "sm_90a"], (9, 0), "sm_90a"),
        (["sm_80", "sm_90", "sm_90a"], (9, 0), "sm_90a"),
        (["sm_80", "sm_90a"], (8, 6), "sm_80"),
        (["sm_80", "sm_86"], (8, 9), "sm_86"),
        (["sm_80", "sm_90a"], (10, 0), None),
        (["sm_100f"], (10, 3), "sm_100f"),
        (["sm_103a"], (10, 0), None),
        (["sm_90a", "nonsense", ""], (12, 0), None),
        ([], (9, 0), None),
    ],
)
def test_the_best_architecture_is_chosen(offered: list[str], capability: tuple[int, int], chosen: str | None) -> None:
    assert choose_architecture(offered, capability) == chosen


def test_a_device_without_code_is_refused(tiny: Maker) -> None:
    with pytest.raises(PlanError, match=r"code for sm_80, sm_90a, but this device is sm_75; rebuild it"):
        CudaDevice(cuda_plan(tiny), FakeDriver(capability=(7, 5)))


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
    def absent(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", absent)
    open_driver.cache_clear()
    with pytest.raises(PlanError, match=r"no CUDA driver \(libcuda\) is here; build it for the CPU"):
        open_driver()
    open_driver.cache_clear()
