"""What a build is for: this machine's vector width and instruction set, or those of one that is named, as targets."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from dataclasses import replace

from mlirt.builder.assemblers.choice import moves_registers
from mlirt.builder.device_choice import (
    asked_architecture,
    asked_device,
    asked_for,
    asked_processor,
    asked_target,
    gpu_here,
    named_architectures,
)
from mlirt.builder.gpu_code import MIN_SHARED_BYTES, check_architecture, machine_architecture
from mlirt.dialects.device_files import cpu_device, gpu_device
from mlirt.dialects.gpu_architectures import architecture_names, gpu_architecture
from mlirt.dialects.processor_files import HOST, Processor, levels, read_processor
from mlirt.dialects.target import AMX, FIXED_REGISTERS, HOPPER, TF32, Target
from mlirt.errors import InvalidInputError, MlirtError, PlanError
from mlirt.runtime.host_cpu import allow_matrix_unit, host_architecture, host_features, thread_count, wanted_threads
from mlirt.systems import LINUX, triple_of

WIDTHS = (512, 256, 128)
_THREADS_ELSEWHERE = 8
"""How many workers the tasks of a CPU are cut for where another machine than this one is named."""


def cpu_target(vector_bits: int | None = None) -> Target:
    """This machine as a target, or the processor or device that is asked for, whatever this machine is.
    MLIRT_VECTOR_BITS or the argument force narrower vectors, MLIRT_WITHOUT lists features that no kernel is made for.

    Raises `InvalidInputError` for a width that is not 128, 256 or 512, or that the machine lacks.
    """
    device, (cpu, system) = asked_for("cpu"), asked_processor()
    wanted = vector_bits or _asked_vector_bits()
    if wanted and wanted not in WIDTHS:
        raise InvalidInputError(
            f"vectors of {wanted} bits are not supported: expected one of {', '.join(map(str, WIDTHS))}"
        )
    if cpu != HOST:
        return _processor_elsewhere(cpu, system, device, wanted)
    machine = _other_machine(device, wanted) if device else _this_machine(wanted)
    return machine if system == HOST else replace(machine, triple=triple_of(host_architecture(), system))


def _this_machine(wanted: int) -> Target:
    available = host_features()
    having = [one for one in levels(host_architecture()) if available.issuperset(one.features)]
    widest = max((one.vector_bits for one in having), default=128)
    if wanted > widest:
        raise InvalidInputError(f"vectors of {wanted} bits were asked for, this machine has {widest}")
    bits = wanted or widest
    chosen = _best_level(having, bits)
    special = _special(chosen, available)
    try:
        allow_matrix_unit(special)
    except PlanError:
        special -= AMX
    features = frozenset(chosen.features) if chosen else frozenset[str]()
    device = chosen.device if chosen is not None and chosen.architecture != "x86_64" else ""
    return Target("cpu", bits, features, "", thread_count(), special, device)


def _best_level(having: Sequence[Processor], bits: int) -> Processor | None:
    """The best of some levels with vectors of a width."""
    return next((one for one in reversed(having) if one.vector_bits == bits), None)


def _processor_elsewhere(name: str, system: str, device: str, wanted: int) -> Target:
    """A processor that is named; nothing is asked of this machine. Vectors that are narrower than its own make it the
    level of its architecture that has these.
    """
    found = read_processor(name)
    if wanted > found.vector_bits:
        raise InvalidInputError(f"vectors of {wanted} bits were asked for, {name} has {found.vector_bits}")
    if wanted and wanted != found.vector_bits:
        level = _best_level(levels(found.architecture), wanted)
        assert level is not None
        found = replace(level, special=tuple({*found.special} & {*level.optional}))
    if device and cpu_device(device).vector_bits != found.vector_bits:
        raise InvalidInputError(
            f"the device {device} has vectors of {cpu_device(device).vector_bits} bits, but the processor {name} has "
            f"{found.vector_bits}"
        )
    features, special = frozenset(found.features), _special(found, frozenset(found.special))
    if system not in (HOST, LINUX):
        special -= AMX  # which other systems let nobody use, or nobody has tried
    triple = found.triple(LINUX if system == HOST else system)
    threads = wanted_threads() or _THREADS_ELSEWHERE
    return Target("cpu", found.vector_bits, features, "", threads, special, device or found.device, triple)


def _other_machine(device: str, wanted: int) -> Target:
    """The processor of a device, with narrower vectors where these are wanted; only the threads are this machine's."""
    described = cpu_device(device)
    if wanted > described.vector_bits:
        raise InvalidInputError(
            f"vectors of {wanted} bits were asked for, the device {device} has {described.vector_bits}"
        )
    bits = wanted or described.vector_bits
    level = _best_level(levels(host_architecture()), bits)
    special = _special(level, frozenset(described.special))
    features = frozenset(level.features) if level else frozenset[str]()
    return Target("cpu", bits, features, "", thread_count(), special, device)


def _asked_vector_bits() -> int:
    """What MLIRT_VECTOR_BITS says; 0 where it says nothing."""
    text = os.environ.get("MLIRT_VECTOR_BITS") or "0"
    try:
        return int(text)
    except ValueError as error:
        expected = ", ".join(map(str, WIDTHS))
        raise InvalidInputError(f"MLIRT_VECTOR_BITS is {text!r}; expected one of {expected}") from error


def _special(level: Processor | None, available: frozenset[str]) -> frozenset[str]:
    """Those of a processor's features that some kernels are made for, without what MLIRT_WITHOUT lists."""
    optional = () if level is None else level.optional
    found = available.intersection(optional).difference(os.environ.get("MLIRT_WITHOUT", "").split(","))
    return found if found >= AMX else found - AMX


def cuda_target(precision: str = "fp32", libraries: frozenset[str] = frozenset()) -> Target:
    """The GPU that kernels are chosen for: the device that is asked for, or MLIRT_ARCH, or this machine's, or an H200
    where there is none.

    With the precision "tf32" its matrix units may read float32 with 10 bits of mantissa. The features that stand for
    `libraries` let tactics call them.
    Raises `InvalidInputError` for an architecture that no code is made for.
    """
    asked = asked_architecture()
    if asked:
        check_architecture(asked)
    wanted = machine_architecture(asked)
    features = libraries | frozenset({TF32} if precision == "tf32" else ())
    special = frozenset[str]() if moves_registers() else frozenset({FIXED_REGISTERS})
    device = asked_for("cuda")
    if device:
        arch = gpu_device(device).arch
        if wanted not in ("", arch):
            raise InvalidInputError(f"the device {device} runs code for {arch}, but MLIRT_ARCH is {wanted}")
        return Target("cuda", 128, features, arch, 1, special, _for_all(device) if asked != wanted else device)
    arch = wanted or _own_architecture() or HOPPER
    here = "" if wanted else gpu_here()
    usual = "" if arch == HOPPER else gpu_architecture(arch).device
    return Target("cuda", 128, features, arch, 1, special, here or (_for_all(usual) if asked != wanted else usual))


def _for_all(device: str) -> str:
    """A device with no more shared memory than all have that may run its PTX."""
    most = gpu_device(device).shared_bytes
    return device if most <= MIN_SHARED_BYTES else f"{device}+shared_bytes={MIN_SHARED_BYTES}"


def architectures_of_build(usual: Sequence[str]) -> Sequence[str]:
    """The architectures that a plan has code for: the one that is named, else the usual ones, unless kernels are chosen
    for another one.
    """
    arch = cuda_target().arch
    return named_architectures(usual if arch in usual else (arch,))


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
            raise InvalidInputError(f"{_asked()} is for target {wanted}, not {target}")
        return target
    chosen, why = automatic_target() if wanted is None else (wanted, f"{_asked()} is asked for")
    logging.getLogger("mlirt").info("mlirt: the target is %s: %s", chosen, why)
    return chosen


def _asked() -> str:
    """In words the device or the processor that is asked for."""
    cpu, system = asked_processor()
    device = asked_device()
    if device:
        return f"the device {device}"
    if cpu == HOST and system == HOST:
        return f"the architecture {asked_architecture()}"
    return f"the processor {cpu}" if cpu != HOST else f"the system {system}"


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
    from mlirt.runtime.cuda_architectures import choose_architecture
    from mlirt.runtime.cuda_driver import open_driver

    try:
        return choose_architecture(architecture_names(), open_driver().compute_capability())
    except MlirtError:
        return None
