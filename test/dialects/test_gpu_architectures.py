"""Architectures of GPUs: what kernels may ask of each, and the devices that kernels are chosen for."""

from __future__ import annotations

import pytest

from mlirt.dialects import gpu_architectures as known
from mlirt.dialects.device_files import device_names, gpu_device, read_device
from mlirt.dialects.gpu_architectures import architecture_names, gpu_architecture, has_instruction
from mlirt.dialects.gpu_device import GpuDevice
from mlirt.dialects.target import Target
from mlirt.errors import InvalidInputError

KIB = 1024
NAMES = ("sm_75", "sm_80", "sm_86", "sm_87", "sm_89", "sm_90a", "sm_100a", "sm_120")


def test_all_that_there_is_code_for() -> None:
    assert architecture_names() == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_its_device_is_one_of_it(name: str) -> None:
    architecture = gpu_architecture(name)
    assert gpu_device(architecture.device).arch == name
    assert Target("cuda", arch=name).gpu.name == architecture.device
    assert architecture.instructions <= known.INSTRUCTIONS
    assert architecture.full_name


@pytest.mark.parametrize("name", [one for one in device_names() if not one.startswith("cpu-")])
def test_every_gpu_is_of_one(name: str) -> None:
    device = read_device(name)
    assert isinstance(device, GpuDevice)
    assert device.arch in NAMES
    assert device.has(known.CLUSTERS) == (device.clusters[1] > 0)
    assert device.registers == 65536


@pytest.mark.parametrize(
    ("instruction", "names"),
    [
        (known.MMA, NAMES),
        (known.MMA_BF16, NAMES[1:]),
        (known.ASYNC_COPY, NAMES[1:]),
        (known.CLUSTERS, NAMES[5:]),
        (known.EARLY_START, NAMES[5:]),
        (known.WARPGROUPS, ("sm_90a",)),
        (known.TENSOR_MEMORY, ("sm_100a",)),
    ],
)
def test_which_have_an_instruction(instruction: str, names: tuple[str, ...]) -> None:
    assert tuple(one for one in NAMES if has_instruction(one, instruction)) == names
    assert not has_instruction("sm_12", instruction)


def test_shared_memory_of_a_block() -> None:
    """By the tables of the CUDA programming guide."""
    found = [gpu_device(gpu_architecture(name).device).shared_bytes // KIB for name in NAMES]
    assert found == [64, 163, 99, 163, 99, 227, 227, 99]


def test_another_one_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="code for 'sm_70' is not made: expected one of sm_75, sm_80, "):
        gpu_architecture("sm_70")
