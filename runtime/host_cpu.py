"""Which processor this is, and whether a plan's code may run on it."""

import os
from collections.abc import Iterable
from functools import cache

from mlirt.errors import PlanError
from mlirt.runtime.llvm_binding import llvm


@cache
def host_features() -> frozenset[str]:
    """The processor features that LLVM finds on this machine."""
    return frozenset(name for name, present in llvm().get_host_cpu_features().items() if present)


@cache
def host_triple() -> str:
    """LLVM's name of this machine, such as `x86_64-unknown-linux-gnu`."""
    return llvm().get_process_triple()


def host_architecture() -> str:
    """The first part of the triple, with the usual aliases unified."""
    name = host_triple().split("-")[0]
    return {"arm64": "aarch64", "amd64": "x86_64"}.get(name, name)


def refuse_foreign_code(triple: str, features: Iterable[str]) -> None:
    """Raise PlanError unless code for `triple` that uses `features` ("avx2", "+avx2"; "-x" is no demand) runs here."""
    architecture = triple.split("-")[0]
    architecture = {"arm64": "aarch64", "amd64": "x86_64"}.get(architecture, architecture)
    if architecture and architecture != host_architecture():
        raise PlanError(
            f"the plan was built for {architecture} processors, this is {host_architecture()}; rebuild it here"
        )
    needed = {name.removeprefix("+") for name in features if name and not name.startswith("-")}
    missing = sorted(needed - host_features())
    if missing:
        raise PlanError(
            f"the plan needs processor features that this machine lacks: {', '.join(missing)}; rebuild it here"
        )


def thread_count() -> int:
    """The threads to run with: the processors that this process may use, at most MLIRT_NUM_THREADS."""
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    wish = os.environ.get("MLIRT_NUM_THREADS", "")
    return max(1, min(available, int(wish))) if wish.isdigit() and int(wish) > 0 else available
