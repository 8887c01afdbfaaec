"""Who decides about each branch and loop of a plan while it runs, as the inspector says it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from mlirt.runtime.conditional_graphs import is_device_only
from mlirt.runtime.manifest import Manifest
from mlirt.runtime.program import Branch, Loop, Program, launches, parts, place_of


@dataclass(frozen=True)
class Decision:
    """A branch or a loop: its layers, and whether the device decides about it, or the host, which waits for it first.

    On a CPU the device is the thread that finishes the kernel in front of the decision.
    """

    kind: str
    layers: tuple[str, ...]
    decided_by: str


def decisions(manifest: Manifest, *, on_device: bool) -> tuple[Decision, ...]:
    """The branches and loops in the order of the program, outer ones first.

    `on_device` says whether the device can decide at all; a loop that needs the host for a check then decides there
    too. Loops that are one kernel are layers, and not among them.
    """
    is_cpu = manifest.target.kind == "cpu"
    return tuple(_found(manifest, manifest.program, on_device, is_cpu))


def is_one_graph(manifest: Manifest, *, on_device: bool) -> bool:
    """Whether a run on a GPU is one CUDA graph: the host looks at nothing in between, and no plugin queues its work."""
    return all(
        (place_of(step) is None or (on_device and is_device_only(step))) and not manifest.hosted & set(launches([step]))
        for step in manifest.program
    )


def _found(manifest: Manifest, program: Program, on_device: bool, all_on_device: bool) -> Iterator[Decision]:
    for step in program:
        if isinstance(step, Branch | Loop):
            alone = all_on_device or (on_device and is_device_only(step, manifest.hosted))
            names = _names(manifest, parts(step))
            yield Decision("loop" if isinstance(step, Loop) else "branch", names, "device" if alone else "host")
            for part in parts(step):
                yield from _found(manifest, part, on_device, alone)


def _names(manifest: Manifest, programs: Sequence[Program]) -> tuple[str, ...]:
    """The layers of programs, each once."""
    numbers = [number for program in programs for number in launches(program)]
    return tuple(dict.fromkeys(manifest.launches[number].layer for number in numbers))
