"""Stands for a device that measures tactics: kernels are not compiled, and times are what a test says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from mlirt.builder.compile_side_by_side import RunningCompilers
from mlirt.builder.cubin import Cubin
from mlirt.builder.tactics import early_compiler
from mlirt.builder.tactics.agreement import Outcome
from mlirt.builder.tactics.early_compiler import EarlyCompiler, cuda_plan_code
from mlirt.builder.tactics.plan_code import PlanCode
from mlirt.codegen.numba_cuda.kernel_text import KernelSource
from mlirt.runtime.plan_file import Plan

if TYPE_CHECKING:
    from mlirt.dialects.tensor_op import Array

Shape = tuple[int, ...]


class FakeTimer:
    """A launch takes `time` of the place of its plan among those measured together, by default the first is best.

    `outcome` says by the place among those that are compared what it gives; by default all agree.
    """

    device = "fake device"
    cache_bytes = 1 << 25
    margin = 0.0

    def __init__(
        self, time: Callable[[int], float] = float, outcome: Callable[[int], Outcome | None] = lambda place: Outcome(())
    ) -> None:
        self.time = time
        self.outcome = outcome
        self.plans: list[Plan] = []
        self.shapes: list[Sequence[Shape]] = []

    def compiler(self) -> EarlyCompiler:
        return EarlyCompiler("sm_90a")

    def plan_code(self, codes: Mapping[str, Mapping[str, Cubin]]) -> PlanCode:
        return cuda_plan_code(codes, "sm_90a")

    def outcomes(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[Outcome | None]:
        return [self.outcome(place) for place in range(len(plans))]

    def times(
        self, plans: Sequence[Plan], shapes: Sequence[Sequence[Shape]], feeds: Sequence[Sequence[Array]]
    ) -> list[float]:
        for plan, of, arrays in zip(plans, shapes, feeds, strict=True):
            assert [array.shape for array in arrays] == list(of)
            self.plans.append(plan)
            self.shapes.append(of)
        return [len(plan.manifest.launches) * self.time(place + 1) for place, plan in enumerate(plans)]


def without_compiler(monkeypatch: pytest.MonkeyPatch, refused: Callable[[KernelSource], bool] | None = None) -> None:
    """Let measurements take empty code for kernels; those that are `refused` fail to compile."""

    def compile_kernels(
        sources: Mapping[str, KernelSource],
        report: None,
        architectures: Sequence[str],
        failures: dict[str, Any],
        running: RunningCompilers,
    ) -> dict[str, dict[str, Cubin]]:
        failures.update({name: "refused" for name, source in sources.items() if refused and refused(source)})
        return {name: {"sm_90a": Cubin(b"\x7fELF", 32, 0)} for name in sources if name not in failures}

    monkeypatch.setattr(early_compiler, "compile_kernels", compile_kernels)


__all__ = ["FakeTimer", "without_compiler"]
