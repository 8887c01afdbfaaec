"""Which processor this is, and whether a plan's code may run on it."""

import ctypes
import math
import os
import re
import sys
from collections.abc import Iterable
from functools import cache

from mlirt.errors import InvalidInputError, PlanError
from mlirt.runtime.arm_features import arm_features
from mlirt.runtime.llvm_binding import llvm
from mlirt.runtime.processor_quota import processor_quota, within_quota
from mlirt.systems import architecture_of, elf_triple, system_of

MAX_THREADS = 256
"""Of one group of workers: what the words of builder/spmd_main.py have room for."""

_SVE_WIDTH = re.compile(r"sve(\d{3,})")

# Linux on x86-64: arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILE_DATA).
_ARCH_PRCTL, _REQUEST_PERMISSION, _MATRIX_REGISTERS = 158, 0x1023, 18


@cache
def host_features() -> frozenset[str]:
    """The processor features of this machine by LLVM's names: those that LLVM finds, and on Arm those that the system
    tells.
    """
    found = frozenset(name for name, present in llvm().get_host_cpu_features().items() if present)
    return found | arm_features() if host_architecture() == "aarch64" else found


@cache
def host_triple() -> str:
    """LLVM's name of this machine, such as `x86_64-unknown-linux-gnu`, for which objects are ELF."""
    return elf_triple(llvm().get_process_triple())


@cache
def host_model() -> str:
    """LLVM's name of this machine's processor, such as `sapphirerapids`."""
    return llvm().get_host_cpu_name()


def host_architecture() -> str:
    """The architecture of this machine."""
    return architecture_of(host_triple())


def refuse_foreign_code(triple: str, features: Iterable[str]) -> None:
    """Raise PlanError unless code for `triple` that uses `features` ("avx2", "+avx2"; "-x" is no demand) runs here."""
    architecture = architecture_of(triple)
    if architecture and architecture != host_architecture():
        raise PlanError(
            f"the plan was built for {architecture[:40]} processors, this is {host_architecture()}; rebuild it here"
        )
    system, here = system_of(triple), system_of(host_triple())
    if system and system != here:
        raise PlanError(
            f"the plan was built for the operating system {system[:40]}, this is {here or 'another'}: code calls "
            "functions and keeps registers as its system says; rebuild it here"
        )
    needed = {name.removeprefix("+") for name in features if name and not name.startswith("-")}
    missing = [_described(name) for name in sorted(needed - host_features())]
    if missing:
        raise PlanError(
            f"the plan needs processor features that this machine lacks: {', '.join(missing)[:200]}; rebuild it here"
        )


def _described(feature: str) -> str:
    """A feature that this machine lacks; of one that is a width of registers, how wide they are here."""
    width = _SVE_WIDTH.fullmatch(feature)
    if width is None:
        return feature
    here = next((found[1] for name in host_features() if (found := _SVE_WIDTH.fullmatch(name))), None)
    return f"{feature} (registers of SVE with {width[1]} bits; this machine has {f'{here} bits' if here else 'no SVE'})"


def runs_here(triple: str, features: Iterable[str]) -> bool:
    """Whether that code does, and the system lets it use what it needs."""
    try:
        refuse_foreign_code(triple, features)
        allow_matrix_unit(features)
    except PlanError:
        return False
    return True


def processor_count() -> int:
    """The processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def allow_matrix_unit(features: Iterable[str]) -> None:
    """Ask the system for what code with the feature "amx-int8" needs, once for all threads; raises PlanError."""
    if not any(name.removeprefix("+") == "amx-int8" for name in features):
        return
    if sys.platform != "linux" or ctypes.CDLL(None).syscall(_ARCH_PRCTL, _REQUEST_PERMISSION, _MATRIX_REGISTERS):
        raise PlanError("the plan needs the processor's matrix unit (amx-int8), which this system does not allow")


def thread_count() -> int:
    """The threads to run with: the processors that this process may use, or has time for, at most MLIRT_NUM_THREADS."""
    available = min(within_quota(processor_count(), processor_quota()), MAX_THREADS)
    wanted = wanted_threads()
    return max(1, min(available, wanted)) if wanted else available


def wanted_threads() -> int:
    """What MLIRT_NUM_THREADS says; 0 where it says nothing."""
    wanted = os.environ.get("MLIRT_NUM_THREADS", "")
    return int(wanted) if wanted.isdigit() else 0


def spin_seconds(spin_ms: float | None = None) -> float | None:
    """How long an idle worker looks for the next run before it sleeps: `spin_ms`, else MLIRT_SPIN_MS.

    None where neither is given: runtime/spin_policy.py finds what is good.
    """
    wanted = os.environ.get("MLIRT_SPIN_MS", "") if spin_ms is None else spin_ms
    if wanted == "":
        return None
    try:
        milliseconds = float(wanted)
    except ValueError:
        milliseconds = math.nan
    if not 0 <= milliseconds < math.inf:
        source = "MLIRT_SPIN_MS" if spin_ms is None else "spin_ms"
        raise InvalidInputError(f"{source} is {wanted!r}; expected milliseconds, 0 to sleep at once")
    return milliseconds / 1e3
