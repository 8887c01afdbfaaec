"""The machine that a network is compiled for, as far as passes and code generators care."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from mlirt.dialects.fast_math import DEFAULT

if TYPE_CHECKING:
    from mlirt.dialects.cpu_device import CpuDevice
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
        from mlirt.dialects.device_files import gpu_device  # rt-opt starts without them
        from mlirt.dialects.gpu_architectures import gpu_architecture

        return gpu_device(self.device or gpu_architecture(self.arch or HOPPER).device)

    def has(self, instruction: str) -> bool:
        """Whether the GPU's architecture has what a kernel asks for (dialects/gpu_architectures.py)."""
        from mlirt.dialects.gpu_architectures import has_instruction

        return has_instruction(self.arch, instruction)

    @property
    def cpu(self) -> CpuDevice:
        """The processors that kernels are chosen for; raises `InvalidInputError` where the device is a GPU."""
        from mlirt.dialects.device_files import cpu_device

        return cpu_device(self.device or self._usual_cpu)

    @property
    def _usual_cpu(self) -> str:
        return "cpu-amx" if _MATRIX_UNIT in self.special else _CPUS.get(self.vector_bits, _ANY_CPU)

    @property
    def described(self) -> str:
        """In words what estimates were made for."""
        return str(self.gpu if self.kind == "cuda" else self.cpu)


@dataclass(frozen=True)
class TargetMachine:
    """What kernels are chosen for, besides the kind of target."""

    vector_bits: int = 512
    """The width of the vectors that kernels for the CPU are written with."""
    threads: int = 2
    """How many workers the tasks of a CPU are cut for; any number can run them."""
    arch: str = "sm_90a"
    """The architecture of the GPU."""
    features: Sequence[str] = ()
    """What the processor has that only some kernels are made for, beyond what its vectors imply."""
    device: str = ""
    """What estimates are made for, as `read_device` takes it; empty for the usual device of the architecture."""
    fast_math: Sequence[str] = DEFAULT
    """Which rewritings that change results are permitted, as `read_rights` gives them."""

    @classmethod
    def of(cls, target: Target, features: Collection[str] = ()) -> Self:
        """That of a target, with more features."""
        having = sorted({*target.special, *features})
        return cls(target.vector_bits, target.threads, target.arch or "sm_90a", having, target.device)

    @classmethod
    def for_device(cls, target: str, device: str | None) -> Self:
        """The usual machine with a device: its vectors or its architecture; raises `InvalidInputError` for one that is
        not of this target.
        """
        if not device:
            return cls()
        from mlirt.dialects.device_files import cpu_device, gpu_device

        if target == "cpu":
            found = cpu_device(device)
            return cls(found.vector_bits, features=sorted(found.special), device=device)
        return cls(arch=gpu_device(device).arch, device=device)
