"""Which code a build for GPUs makes, for whoever asks without making any."""

from __future__ import annotations

from mlirt.dialects.gpu_architectures import gpu_architecture
from mlirt.errors import InvalidInputError

ARCHITECTURES = ("sm_80", "sm_90a")
"""What there is code for where nobody names one, and this machine's GPU runs one of them or there is none."""
SWITCH = "MLIRT_CHECK_MACHINE_CODE"
"""The environment variable that has each kernel checked by machine_code/check.py; needs nvdisasm."""
PTX = "+ptx"
"""Behind an architecture: its PTX is kept as well, for GPUs that are not known yet."""
AMPERE_AND_LATER = "sm_80" + PTX
"""What runs on all GPUs from sm_80 on: TensorRT's hardware compatibility level AMPERE_PLUS."""
COMPUTE = "compute_"
"""What the PTX of an architecture is called beside its machine code: `compute_80` beside `sm_80`."""
MIN_SHARED_BYTES = 101376
"""Shared memory that a block has on all GPUs from sm_80 on, so that kept PTX runs on each."""
_ALONE = "a"  # behind the architectures whose PTX runs on them alone


def check_architecture(name: str) -> None:
    """Raise `InvalidInputError` for an architecture that no code is made for, or whose PTX runs on no other one."""
    arch = name.removesuffix(PTX)
    gpu_architecture(arch)
    if name.endswith(PTX) and arch.endswith(_ALONE):
        raise InvalidInputError(
            f"PTX of {arch} runs on no newer GPU, as it may have what {arch} alone has: keep that of an older one "
            f"beside it, such as {arch},sm_80{PTX}"
        )


def machine_architecture(name: str) -> str:
    """`sm_80` of `sm_80+ptx`."""
    return name.removesuffix(PTX)


def kept_codes(name: str) -> tuple[str, ...]:
    """What a plan for an architecture holds of a kernel: `sm_80`, and of `sm_80+ptx` also `compute_80`."""
    arch = machine_architecture(name)
    return (arch, arch.replace("sm_", COMPUTE)) if name.endswith(PTX) else (arch,)


__all__ = [
    "AMPERE_AND_LATER",
    "ARCHITECTURES",
    "COMPUTE",
    "MIN_SHARED_BYTES",
    "PTX",
    "SWITCH",
    "check_architecture",
    "kept_codes",
    "machine_architecture",
]
