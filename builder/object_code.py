"""How a plan holds the object files of its kernels for a CPU, and the machine that they are for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlirt.dialects.target import Target

MAIN = "main.o"
"""The section with the code that runs the launches of a plan."""


def object_sections(objects: Mapping[str, bytes], machine: Target) -> dict[str, bytes]:
    """The sections of a plan: the object file of each kernel, by its name, and the code that runs them."""
    from mlirt.builder.spmd_main import main_features, main_object
    from mlirt.runtime.host_cpu import host_triple

    sections = {f"{kernel}.o": code for kernel, code in objects.items()}
    sections[MAIN] = main_object(machine.triple or host_triple(), main_features(machine.features))
    return sections


def object_records(objects: Mapping[str, bytes]) -> dict[str, dict[str, object]]:
    """What the records of kernels say of their code."""
    return {kernel: {"symbol": kernel, "object": f"{kernel}.o"} for kernel in objects}


def target_record(machine: Target) -> dict[str, object]:
    """What a manifest says of the machine that a plan is for."""
    from mlirt.runtime.host_cpu import host_triple

    return {
        "kind": machine.kind,
        "triple": (machine.triple or host_triple()) if machine.kind == "cpu" else "",
        "features": sorted(machine.features),
        "vector_bits": machine.vector_bits,
        "arch": machine.arch,
        "device": machine.described,
    }


__all__ = ["MAIN", "object_records", "object_sections", "target_record"]
