"""Compiles the kernels of trials for this machine's processors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Self

from mlirt.builder.numba_cpu import compile_kernels
from mlirt.builder.object_code import MAIN, object_records, object_sections, target_record
from mlirt.builder.tactics.plan_code import PlanCode
from mlirt.dialects.target import Target


@dataclass(frozen=True)
class CpuSource:
    """The text of a kernel, and the features beyond those of all code that it uses."""

    name: str
    text: str
    features: frozenset[str] = frozenset()


class CpuCompiler:
    """Compiles when everything has been taken, as many kernels side by side as there are cores."""

    def __init__(self, machine: Target) -> None:
        self._machine = machine
        self._taken: dict[CpuSource, None] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def take(self, sources: Iterable[CpuSource]) -> None:
        """Kernels that shall be compiled; those of different layers may share a name, but not their text."""
        self._taken.update(dict.fromkeys(sources))

    def finish(self) -> dict[CpuSource, bytes]:
        """The object file of each; raises `CompileError` that names the kernel which does not compile."""
        done: dict[CpuSource, bytes] = {}
        waiting: list[CpuSource] = list(self._taken)
        while waiting:
            batch = {one.name: one for one in reversed(waiting) if one.features == waiting[0].features}
            waiting: list[CpuSource] = [one for one in waiting if batch.get(one.name) is not one]
            machine = with_features(self._machine, next(iter(batch.values())).features)
            objects = compile_kernels({name: one.text for name, one in batch.items()}, machine)
            done |= {batch[name]: code for name, code in objects.items()}
        return done


def with_features(machine: Target, features: frozenset[str]) -> Target:
    """A machine whose code may use more than all code may."""
    return replace(machine, features=machine.features | features)


def cpu_plan_code(objects: Mapping[str, bytes], machine: Target) -> PlanCode:
    """The code of a plan by the names of its kernels; `machine` has all features that they use."""
    header = {"target": target_record(machine), "main": MAIN}
    return PlanCode(object_sections(objects, machine), object_records(objects), header)
