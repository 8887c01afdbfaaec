"""Which device kernels are chosen for, and which processor code is for: what a build asks for, else this machine's."""

from __future__ import annotations

import os
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from mlirt.builder.gpu_code import kept_codes
from mlirt.dialects.device_files import Device, device_names, read_device
from mlirt.dialects.gpu_architectures import architecture_names, gpu_architecture
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.processor_files import HOST, check_system, read_processor
from mlirt.errors import MlirtError

_ASKED: ContextVar[str] = ContextVar("mlirt_device", default="")
_ARCHITECTURE: ContextVar[str] = ContextVar("mlirt_architecture", default="")
_PROCESSOR: ContextVar[tuple[str, str]] = ContextVar("mlirt_processor", default=(HOST, HOST))
_RELATIVE_TOLERANCE = 0.05  # by how much a clock or a bandwidth that a driver tells may differ from a data sheet's
_EXACT = ("processors", "shared_bytes")


@contextmanager
def asking(
    device: str | None, cpu: str | None = None, system: str | None = None, gpu: str | None = None
) -> Generator[None]:
    """Let a device, a processor, an operating system and a GPU's architecture count for the builds inside, those that
    are named; raises `InvalidInputError` for one there is not.
    """
    if device:
        read_device(device)
    if cpu and cpu != HOST:
        read_processor(cpu)
    check_system(system or HOST)
    before = _PROCESSOR.get()
    tokens = _ASKED.set(device or _ASKED.get()), _PROCESSOR.set((cpu or before[0], system or before[1]))
    arch = _ARCHITECTURE.set(gpu or _ARCHITECTURE.get())
    try:
        yield
    finally:
        _ASKED.reset(tokens[0])
        _PROCESSOR.reset(tokens[1])
        _ARCHITECTURE.reset(arch)


def asked_processor() -> tuple[str, str]:
    """The names of the processor and the operating system that code is for; each is `host` where none is asked for."""
    return _PROCESSOR.get()


def asked_architecture() -> str:
    """The architecture of GPUs that code is for, or MLIRT_ARCH; empty where neither is given."""
    return _ARCHITECTURE.get() or os.environ.get("MLIRT_ARCH", "")


def named_architectures(usual: Sequence[str]) -> Sequence[str]:
    """The architectures that there is code for: the one that a build names, with `compute_80` where its PTX is kept;
    else the usual ones.
    """
    named = _ARCHITECTURE.get()
    return kept_codes(named) if named else usual


def asked_device() -> str:
    """The description of the device that is asked for, or MLIRT_DEVICE; empty where neither is given."""
    return _ASKED.get() or os.environ.get("MLIRT_DEVICE", "")


def asked_target() -> str | None:
    """The target that the device or the processor which is asked for belongs to; None where none is."""
    device = asked_device()
    if device:
        return _target_of(read_device(device))
    if _ARCHITECTURE.get():
        return "cuda"
    return "cpu" if asked_processor() != (HOST, HOST) else None


def asked_for(target: str) -> str:
    """The device that is asked for, where it belongs to this target; else empty."""
    return asked_device() if asked_target() == target else ""


def _target_of(device: Device) -> str:
    return "cuda" if isinstance(device, GpuDevice) else "cpu"


def gpu_here() -> str:
    """The description of this machine's GPU; empty where there is none, or no file tells of one of its architecture."""
    from mlirt.runtime.cuda_driver import open_driver

    try:
        driver = open_driver()
        return description(driver.figures(), driver.name(), driver.compute_capability())
    except MlirtError:
        return ""


def description(figures: Mapping[str, float], name: str, capability: tuple[int, int]) -> str:
    """The device of a file with the full name, else the usual one of the architecture, with the figures that differ.

    `figures` are in the units of a `GpuDevice`; 0 stands for what a driver does not tell.
    """
    from mlirt.runtime.cuda_architectures import choose_architecture

    gpus = {text: read for text in device_names() if isinstance(read := read_device(text), GpuDevice)}
    named = next((text for text, one in gpus.items() if one.full_name == name), None)
    arch = choose_architecture(architecture_names(), capability)
    chosen = named or (None if arch is None else gpu_architecture(arch).device)
    if chosen is None:
        return ""
    known = gpus[chosen]
    changes = [
        f"+{figure}={value:g}" if figure not in _EXACT else f"+{figure}={int(value)}"
        for figure, value in figures.items()
        if value and _differs(figure, value, getattr(known, figure))
    ]
    return chosen + "".join(changes)


def _differs(figure: str, value: float, known: float) -> bool:
    return value != known if figure in _EXACT else abs(value / known - 1) > _RELATIVE_TOLERANCE


__all__ = [
    "asked_architecture",
    "asked_device",
    "asked_for",
    "asked_processor",
    "asked_target",
    "asking",
    "description",
    "gpu_here",
    "named_architectures",
]
