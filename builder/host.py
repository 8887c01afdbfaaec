"""What the machine that builds can run: its vector width and instruction set, as compile targets."""

from __future__ import annotations

import logging
import os

from mlirt.builder.device_choice import asked_device, asked_for, asked_target, gpu_here
from mlirt.dialects.device_files import cpu_device, gpu_device
from mlirt.dialects.target import AMX, Target
from mlirt.errors import InvalidInputError, MlirtError, PlanError
from mlirt.runtime.host_cpu import allow_matrix_unit, host_features, thread_count

_AVX2 = ("avx2", "fma", "f16c", "bmi", "bmi2", "lzcnt", "popcnt", "movbe", "sse4.2")
# The features that generated code uses beyond the baseline, by vector width.
_NEEDED = {
    512: ("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl", *_AVX2),
    256: _AVX2,
    128: (),
}
# What some kernels are made for, where a machine has it: sums of int8 products in one instruction, or of matrices.
_SPECIAL = {512: ("avx512vnni", "amx-tile", "amx-int8"), 256: ("avxvnni",), 128: ()}
WIDTHS = tuple(_NEEDED)


def cpu_target(vector_bits: int | None = None) -> Target:
    """This machine as a target, or the device that is asked for, whatever this machine is. MLIRT_VECTOR_BITS or the
    argument force narrower vectors, MLIRT_WITHOUT lists features that no kernel is made for.

    Raises `InvalidInputError` for a width that is not 128, 256 or 512, or that the machine lacks.
    """
    device = asked_for("cpu")
    wanted = vector_bits or _asked_vector_bits()
    if wanted and wanted not in WIDTHS:
        raise InvalidInputError(
            f"vectors of {wanted} bits are not supported: expected one of {', '.join(map(str, WIDTHS))}"
        )
    if device:
        return _other_machine(device, wanted)
    available = host_features()
    widest = next(bits for bits, needed in _NEEDED.items() if available.issuperset(needed))
    if wanted > widest:
        raise InvalidInputError(f"vectors of {wanted} bits were asked for, this machine has {widest}")
    bits = wanted or widest
    special = _special(bits, available)
    try:
        allow_matrix_unit(special)
    except PlanError:
        special -= AMX
    return Target("cpu", bits, frozenset(_NEEDED[bits]), "", thread_count(), special)


def _other_machine(device: str, wanted: int) -> Target:
    """The processor of a device, with narrower vectors where these are wanted; only the threads are this machine's."""
    described = cpu_device(device)
    if wanted > described.vector_bits:
        raise InvalidInputError(
            f"vectors of {wanted} bits were asked for, the device {device} has {described.vector_bits}"
        )
    bits = wanted or described.vector_bits
    special = _special(bits, frozenset(described.special))
    return Target("cpu", bits, frozenset(_NEEDED[bits]), "", thread_count(), special, device)


def _asked_vector_bits() -> int:
    """What MLIRT_VECTOR_BITS says; 0 where it says nothing."""
    text = os.environ.get("MLIRT_VECTOR_BITS") or "0"
    try:
        return int(text)
    except ValueError as error:
        expected = ", ".join(map(str, WIDTHS))
        raise InvalidInputError(f"MLIRT_VECTOR_BITS is {text!r}; expected one of {expected}") from error


def _special(bits: int, available: frozenset[str]) -> frozenset[str]:
    """Those of a processor's features that some kernels are made for, without what MLIRT_WITHOUT lists."""
    found = available.intersection(_SPECIAL[bits]).difference(os.environ.get("MLIRT_WITHOUT", "").split(","))
    return found if found >= AMX else found - AMX


def cuda_target(precision: str = "fp32", libraries: frozenset[str] = frozenset()) -> Target:
    """The GPU that kernels are chosen for: the device that is asked for, or MLIRT_ARCH, or this machine's, or an H200
    where there is none.

    With the precision "tf32" its matrix units may read float32 with 10 bits of mantissa. The features that stand for
    `libraries` let tactics call them.
    Raises `InvalidInputError` for an architecture that no code is made for.
    """
    from mlirt.builder.gpu_code import ARCHITECTURES

    wanted = os.environ.get("MLIRT_ARCH", "")
    if wanted and wanted not in ARCHITECTURES:
        raise InvalidInputError(f"code for {wanted!r} is not made: expected one of {', '.join(ARCHITECTURES)}")
    features = libraries | frozenset({"tf32"} if precision == "tf32" else ())
    device = asked_for("cuda")
    if device:
        arch = gpu_device(device).arch
        if wanted not in ("", arch):
            raise InvalidInputError(f"the device {device} runs code for {arch}, but MLIRT_ARCH is {wanted}")
        return Target("cuda", 128, features, arch, 1, device=device)
    arch = wanted or _own_architecture() or ARCHITECTURES[-1]
    here = "" if wanted else gpu_here()
    return Target("cuda", 128, features, arch, 1, device=here)


def automatic_target() -> tuple[str, str]:
    """What the target "auto" is on this machine, and why."""
    from mlirt.runtime.cuda_driver import open_driver

    try:
        return "cuda", f"the CUDA driver is here, with {open_driver().describe()}"
    except MlirtError as error:
        text = str(error).removeprefix("the plan was built for CUDA, but ").partition(";")[0]
        return "cpu", text


def log_target(target: str) -> str:
    """The target that a name stands for; one line of the log `mlirt` says what "auto" is, and why."""
    wanted = asked_target()
    if target != "auto":
        if wanted not in (None, target):
            raise InvalidInputError(f"the device {asked_device()} is for target {wanted}, not {target}")
        return target
    chosen, why = automatic_target() if wanted is None else (wanted, f"the device is {asked_device()}")
    logging.getLogger("mlirt").info("mlirt: the target is %s: %s", chosen, why)
    return chosen


def gpu_is_here() -> bool:
    """Whether the CUDA driver is installed and sees a device."""
    from mlirt.runtime.cuda_driver import open_driver

    try:
        open_driver()
    except MlirtError:
        return False
    return True


def _own_architecture() -> str | None:
    """The architecture whose code this machine's GPU runs best."""
    from mlirt.builder.gpu_code import ARCHITECTURES
    from mlirt.runtime.cuda_architectures import choose_architecture
    from mlirt.runtime.cuda_driver import open_driver

    try:
        return choose_architecture(ARCHITECTURES, open_driver().compute_capability())
    except MlirtError:
        return None
