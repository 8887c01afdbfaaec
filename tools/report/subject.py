"""What a page is about: a plan for some shapes, with what else is known of it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from mlirt.runtime.plan_file import Plan
from mlirt.runtime.shape_binding import ShapeBinding
from mlirt.tools.report.graph import Graph
from mlirt.tools.report.launch_graph import layers_of
from mlirt.tools.report.launch_times import LaunchTime
from mlirt.tools.report.launch_work import LaunchWork, works
from mlirt.tools.report.machine_code import MachineCode

if TYPE_CHECKING:
    from mlirt.builder.calibration.calibration import Calibration
    from mlirt.passes.remarks import Remark
    from mlirt.tools.report.build_spans import Span
    from mlirt.tools.report.kernel_texts import KernelText
    from mlirt.tools.report.tactic_choices import TacticChoice
    from mlirt.tools.report.tensor_scales import TensorScale


@dataclass(frozen=True)
class BuildFacts:
    """What is known of a plan that was built for the page."""

    graphs: Sequence[Graph] = ()
    """The network before, and with its layers fused."""
    nodes: Sequence[tuple[str, str]] = ()
    """The nodes of the model: names and operators."""
    spans: Sequence[Span] = ()
    tactics: Sequence[TacticChoice] = ()
    remarks: Sequence[Remark] = ()
    compiled: Sequence[str] = ()
    """The kernels whose machine code was not in the cache."""
    is_cached: bool = False
    scales: Sequence[TensorScale] = ()
    """The constant scales of a network that is quantised."""
    calibration: Calibration | None = None
    """What the scales come from, with histograms where data were counted for this build."""
    errors: Mapping[str, float] = field(default_factory=dict[str, float])
    """How far tensors in int8 are from float32, by name."""

    @cached_property
    def tactics_by_layers(self) -> Mapping[tuple[str, ...], Sequence[TacticChoice]]:
        """The choices of each launch, by its layers."""
        found: defaultdict[tuple[str, ...], list[TacticChoice]] = defaultdict(list)
        for choice in self.tactics:
            for layers in choice.layers:
                found[layers].append(choice)
        return found


@dataclass(frozen=True)
class Subject:
    """A plan bound to shapes; `times` are those of its launches, `kernels` the texts of its kernels by name."""

    label: str
    plan: Plan
    binding: ShapeBinding
    times: Sequence[LaunchTime] | None = None
    kernels: Mapping[str, KernelText] = field(default_factory=dict[str, "KernelText"])
    build: BuildFacts | None = None
    code: MachineCode = field(default_factory=lambda: MachineCode({}))
    """The machine code of the kernels."""

    @cached_property
    def works(self) -> Sequence[LaunchWork]:
        """What each launch moves and computes."""
        return works(self.plan.manifest, self.binding.values)

    @cached_property
    def layers(self) -> Sequence[tuple[str, ...]]:
        """The layers of the trained network in each launch."""
        return [layers_of(launch) for launch in self.plan.manifest.launches]
