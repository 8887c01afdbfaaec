"""Which device is current in a thread, against a driver's library with two of them (tensorrt-features.md#13.22)."""

from __future__ import annotations

from typing import Any

import pytest

from mlirt.errors import PlanError
from mlirt.runtime import current_device
from mlirt.runtime.cuda_driver import CudaDriver
from mlirt.runtime.current_device import current_ordinal

FIRST_CONTEXT = 1000


class TwoDevices:
    """A driver's library that knows which context is current; the context of device n is FIRST_CONTEXT + n."""

    def __init__(self, count: int = 2) -> None:
        self.count = count
        self.context = 0
        self.mode = 1

    def __getattr__(self, name: str) -> Any:
        work, library = getattr(TwoDevices, f"do_{name}", None), self

        class Function:
            argtypes: Any = None
            restype: Any = None

            def __call__(self, *arguments: Any) -> int:
                return 0 if work is None else work(library, *arguments)

        self.__dict__[name] = Function()
        return self.__dict__[name]

    def do_cuDeviceGetCount(self, count: Any) -> int:
        count._obj.value = self.count
        return 0

    def do_cuDeviceGet(self, device: Any, ordinal: int) -> int:
        device._obj.value = ordinal
        return 0

    def do_cuDevicePrimaryCtxRetain(self, context: Any, device: Any) -> int:
        context._obj.value = FIRST_CONTEXT + device.value
        return 0

    def do_cuCtxSetCurrent(self, context: Any) -> int:
        self.context = context if isinstance(context, int) else context.value
        return 0

    def do_cuCtxGetCurrent(self, context: Any) -> int:
        context._obj.value = self.context
        return 0

    def do_cuCtxGetDevice(self, device: Any) -> int:
        device._obj.value = self.context - FIRST_CONTEXT
        return 0

    def do_cuModuleGetLoadingMode(self, mode: Any) -> int:
        mode._obj.value = self.mode
        return 0


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> TwoDevices:
    library = TwoDevices()
    monkeypatch.setattr(current_device, "_library", lambda: library)
    return library


def test_the_number_of_the_current_device(library: TwoDevices, monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#13.23: without a context, and without a driver, it is 0."""
    assert current_ordinal() == 0
    for ordinal in (0, 1):
        library.context = FIRST_CONTEXT + ordinal
        assert current_ordinal() == ordinal

    def absent() -> None:
        raise OSError("libcuda.so.1")

    monkeypatch.setattr(current_device, "_library", absent)
    assert current_ordinal() == 0


@pytest.mark.parametrize(("ordinal", "before"), [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_another_device_is_current_for_a_while(library: TwoDevices, ordinal: int, before: int) -> None:
    driver = CudaDriver(library, ordinal)
    library.context = FIRST_CONTEXT + before
    was = driver.enter()
    assert library.context == FIRST_CONTEXT + ordinal
    driver.leave(was)
    assert library.context == FIRST_CONTEXT + before


@pytest.mark.parametrize("ordinal", [0, 1])
def test_no_device_was_chosen(library: TwoDevices, ordinal: int) -> None:
    """Then CUDA's own runtime takes device 0, and so it does behind us."""
    driver = CudaDriver(library, ordinal)
    driver.leave(driver.enter())
    assert current_ordinal() == 0


def test_a_device_that_there_is_not(library: TwoDevices) -> None:
    with pytest.raises(PlanError, match="no device 2, of 2 CUDA devices"):
        CudaDriver(library, 2)


@pytest.mark.parametrize(
    ("asked", "mode", "is_lazy"), [("LAZY", 2, True), ("lazy ", 2, True), ("LAZY", 1, False), ("EAGER", 2, False)]
)
def test_how_code_is_loaded(
    library: TwoDevices, monkeypatch: pytest.MonkeyPatch, asked: str, mode: int, is_lazy: bool
) -> None:
    """tensorrt-features.md#13.24: late where the variable says so, and the driver does it; at once by default."""
    driver, library.mode = CudaDriver(library), mode
    monkeypatch.delenv("CUDA_MODULE_LOADING", raising=False)
    assert not driver.loads_lazily()
    monkeypatch.setenv("CUDA_MODULE_LOADING", asked)
    assert driver.loads_lazily() == is_lazy
