"""Runs on the GPU's memory, on a driver that keeps it on the host; and on a GPU with PyTorch where there is one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver, cuda_plan

from mlirt.errors import InvalidInputError
from mlirt.runtime.context import ExecutionContext
from mlirt.runtime.cuda import CudaDevice
from mlirt.runtime.device_run import has_device_tensors, run_on_device
from mlirt.runtime.shape_binding import ShapeBinder

Maker = Callable[[], Any]


class OnDevice:
    """A tensor that says it lies on a GPU; the fake driver's memory is the host's."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.streams: list[int] = []

    def __dlpack__(self, stream: int | None = None) -> object:
        assert stream is not None
        self.streams.append(stream)
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, 0


class ByInterface:
    """The same by the older protocol."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.__cuda_array_interface__ = {
            "typestr": array.dtype.str,
            "shape": array.shape,
            "strides": array.strides,
            "data": (array.ctypes.data, False),
            "version": 3,
        }


@pytest.fixture
def context(tiny: Maker) -> ExecutionContext:
    plan = cuda_plan(tiny)
    return ExecutionContext(plan.manifest, CudaDevice(plan, FakeDriver()).session())


def _run(context: ExecutionContext, x: Any, y: Any, z: Any, stream: int = 0) -> dict[str, Any]:
    manifest = context._manifest  # pyright: ignore[reportPrivateUsage]
    names = [tensor.name for tensor in manifest.outputs]
    return run_on_device(context, manifest, {"x": x}, dict(zip(names, (y, z), strict=True)), stream)


@pytest.mark.parametrize("kind", [OnDevice, ByInterface])
def test_results_are_in_the_callers_tensors(context: ExecutionContext, kind: Callable[[np.ndarray], Any]) -> None:
    for n in (3, 1, 3):
        x = np.random.default_rng(n).standard_normal((n, 4), np.float32)
        y, z = kind(np.empty_like(x)), kind(np.empty(8, np.float32))
        assert has_device_tensors({"x": kind(x)})
        found = _run(context, kind(x), y, z)
        assert list(found.values()) == [y, z]
        np.testing.assert_allclose(y.array, np.cos((2 * x + 1).reshape(-1)[::-1]).reshape(n, 4), rtol=1e-6)
        np.testing.assert_array_equal(z.array, np.arange(8, dtype=np.float32) + 0.5)


def test_tensors_of_the_device_need_no_memory_of_the_host(tiny: Maker) -> None:
    plan, driver = cuda_plan(tiny), FakeDriver()
    context = ExecutionContext(plan.manifest, CudaDevice(plan, driver).session())
    x, y, z = (OnDevice(np.ones(shape, np.float32)) for shape in ((2, 4), (2, 4), (8,)))
    _run(context, x, y, z)
    assert driver.pinned == []
    context.run({"x": x.array})
    assert len(driver.pinned) == 1


def test_shapes_that_come_again_are_not_bound_again(context: ExecutionContext, monkeypatch: pytest.MonkeyPatch) -> None:
    bound: list[object] = []
    first = ShapeBinder.bind

    def noted(self: ShapeBinder, shapes: Any, *rest: Any, **named: Any) -> Any:
        bound.append(shapes)
        return first(self, shapes, *rest, **named)

    monkeypatch.setattr(ShapeBinder, "bind", noted)
    for n in (3, 3, 2, 3):
        x, y = (OnDevice(np.ones((n, 4), np.float32)) for _ in range(2))
        _run(context, x, y, OnDevice(np.empty(8, np.float32)))
    assert bound == [((3, 4),), ((2, 4),)]


def test_other_libraries_are_told_the_stream(context: ExecutionContext) -> None:
    x, y, z = (OnDevice(np.ones(shape, np.float32)) for shape in ((2, 4), (2, 4), (8,)))
    _run(context, x, y, z)
    assert x.streams == [1]  # the protocol's name of the legacy default stream


@pytest.mark.parametrize(
    ("x", "y", "message"),
    [
        (OnDevice(np.ones((2, 4))), None, r"input 'x': expected data type float32, got float64"),
        (OnDevice(np.ones((4, 2), np.float32).T), None, r"input 'x': the tensor has gaps"),
        (None, OnDevice(np.ones((3, 4), np.float32)), r"output '\w+': expected the shape \(2, 4\), got \(3, 4\)"),
        (None, np.ones((2, 4), np.float32), r"output '\w+': the tensor lies on the host"),
    ],
)
def test_what_does_not_fit_is_refused(context: ExecutionContext, x: Any, y: Any, message: str) -> None:
    good = OnDevice(np.ones((2, 4), np.float32))
    with pytest.raises(InvalidInputError, match=message):
        _run(context, x or good, good if y is None else y, OnDevice(np.empty(8, np.float32)))


def test_all_outputs_are_needed(context: ExecutionContext) -> None:
    manifest = context._manifest  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(InvalidInputError, match="is missing"):
        run_on_device(context, manifest, {"x": OnDevice(np.ones((2, 4), np.float32))}, {}, 0)


def _relu_engine() -> tuple[Any, Any]:
    """PyTorch, and an engine of one layer, `input` to `output`, on the GPU."""
    torch: Any = pytest.importorskip("torch")
    import mlirt

    made: Any = mlirt.compile(torch.nn.ReLU(), (torch.randn(5, 64),), target="cuda")
    return torch, made.engine


@pytest.mark.gpu
def test_tensors_of_pytorch_on_a_gpu() -> None:
    """On the current stream, in tensors of PyTorch, with the same bits as arrays."""
    torch, engine = _relu_engine()
    with torch.cuda.stream(torch.cuda.Stream()):
        x = torch.randn(5, 64, device="cuda")
        y = torch.empty_like(x)
        engine.run_on_stream({"input": x}, {"output": y}, torch.cuda.current_stream().cuda_stream)
        assert torch.equal(y, x.relu())
    assert np.array_equal(engine.run({"input": x.cpu().numpy()})["output"], y.cpu().numpy())


@pytest.mark.gpu
def test_a_graph_of_pytorch_takes_the_run() -> None:
    """Captured on PyTorch's stream and replayed by PyTorch on other numbers, between operators of PyTorch."""
    torch, engine = _relu_engine()
    x = torch.randn(5, 64, device="cuda")
    y = torch.empty_like(x)
    stream, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(stream):
        engine.run_on_stream({"input": x}, {"output": y}, stream.cuda_stream)  # code is loaded before
    torch.cuda.synchronize()
    with torch.cuda.graph(graph, stream=stream):
        shifted = x - 0.5
        engine.run_on_stream({"input": shifted}, {"output": y}, torch.cuda.current_stream().cuda_stream)
        doubled = y * 2
    for _ in range(3):
        x.copy_(torch.randn(5, 64))
        graph.replay()
        torch.cuda.synchronize()
        assert torch.equal(doubled, 2 * (x - 0.5).relu())


@pytest.mark.gpu
def test_runs_on_pytorchs_tensors_copy_nothing() -> None:
    """From the second call with the same addresses on, as PyTorch's own trace of the device tells."""
    torch, engine = _relu_engine()
    x = torch.randn(5, 64, device="cuda")
    y = torch.empty_like(x)

    def run() -> None:
        engine.run_on_stream({"input": x}, {"output": y}, torch.cuda.current_stream().cuda_stream)

    for _ in range(2):
        run()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as trace:
        for _ in range(3):
            x.neg_()
            run()
            assert torch.equal(y, x.relu())
    names = [one.name.lower() for one in trace.events() if one.device_type == torch.autograd.DeviceType.CUDA]
    assert any("relu" in name or "pointwise" in name for name in names), names
    assert not any("dtod" in name for name in names), names  # `equal` fetches a truth value to the host


@pytest.mark.gpu
def test_weights_and_arena_lie_in_memory_of_pytorchs_allocator(tmp_path: Path) -> None:
    """And PyTorch has it back when the engine is gone."""
    torch: Any = pytest.importorskip("torch")
    import mlirt

    module = torch.nn.Sequential(torch.nn.Linear(64, 512), torch.nn.ReLU(), torch.nn.Linear(512, 64)).eval()
    made: Any = mlirt.compile(module, (torch.randn(5, 64),), target="cuda")
    torch.cuda.init()
    before = torch.cuda.memory_allocated()
    made.save(tmp_path / "net.plan")
    engine = mlirt.load(tmp_path / "net.plan", allocator=mlirt.TorchAllocator())
    x = torch.randn(5, 64)
    with torch.no_grad():
        assert torch.allclose(torch.from_numpy(engine.run({"input": x.numpy()})["output"]), module(x), atol=1e-3)
    assert torch.cuda.memory_allocated() - before >= 2 * 64 * 512 * 4
    del engine
    assert torch.cuda.memory_allocated() == before
