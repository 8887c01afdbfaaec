"""The machine that a network is compiled for, as far as passes and code generators care."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from mlirt.dialects.cpu_device import CpuDevice
from mlirt.dialects.device_files import cpu_device, gpu_device
from mlirt.dialects.gpu_device import GpuDevice

TargetKind: TypeAlias = Literal["cpu", "cuda", "reference"]

HOPPER = "sm_90a"
"""The architecture of GPUs whose warpgroups multiply matrices; what code is for where nothing is named or here."""
TF32 = "tf32"
"""The feature of a target whose matrix units may read float32 with 10 bits of mantissa."""
FIXED_REGISTERS = "fixed-registers"
"""The special feature of a target whose assembler lets no warpgroup give registers to others."""
AMX = frozenset({"amx-tile", "amx-int8"})
"""The features of a processor with a matrix unit for int8 (dialects/kernel/amx.py)."""
_CPUS = {512: "cpu-avx512", 256: "cpu-avx2"}
_ANY_CPU, _MATRIX_UNIT = "cpu-128", "amx-int8"


@dataclass(frozen=True)
class Target:
    """A kind of machine with its vector width in bits, instruction set features, CUDA architecture and worker
    threads.

    All code may use `features`; `special` ones it has too, for the kernels that are made for them. `device` is the
    description of what estimates are made for, as `read_device` takes it; empty for the usual one of the architecture.
    `triple` is LLVM's name of a machine with a CPU and its operating system; empty for this one.
    """

    kind: TargetKind
    vector_bits: int = 512
    features: frozenset[str] = frozenset()
    arch: str = "sm_90a"
    threads: int = 2
    special: frozenset[str] = frozenset()
    device: str = ""
    triple: str = ""

    @property
    def gpu(self) -> GpuDevice:
        """The GPU that kernels are chosen for; raises `InvalidInputError` where the device is none."""
        from mlirt.dialects.gpu_architectures import gpu_architecture  # rt-opt starts without it

        return gpu_device(self.device or gpu_architecture(self.arch or HOPPER).device)

    def has(self, instruction: str) -> bool:
        """Whether the GPU's architecture has what a kernel asks for (dialects/gpu_architectures.py)."""
        from mlirt.dialects.gpu_architectures import has_instruction

        return has_instruction(self.arch, instruction)

    @property
    def cpu(self) -> CpuDevice:
        """The processors that kernels are chosen for; raises `InvalidInputError` where the device is a GPU."""
        return cpu_device(self.device or self._usual_cpu)

    @property
    def _usual_cpu(self) -> str:
        return "cpu-amx" if _MATRIX_UNIT in self.special else _CPUS.get(self.vector_bits, _ANY_CPU)

    @property
    def described(self) -> str:
        """In words what estimates were made for."""
        return str(self.gpu if self.kind == "cuda" else self.cpu)
