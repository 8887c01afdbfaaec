"""Watches a build for the report: the network before and after fusion, the time of each pass, kernels as IR and text.

It is a `Remarks`, so that `mlirt.compile(remarks=BuildRecorder())` and its progress tell it all there is to know.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mlirt.builder.calibration.calibration import Calibration
from mlirt.builder.plan_cache import TAKEN
from mlirt.dialects.context import RtContext
from mlirt.dialects.kernel.core import FuncOp
from mlirt.dialects.locations import names
from mlirt.passes.phases import PHASES
from mlirt.passes.remarks import Remarks
from mlirt.tools.report.build_spans import Span
from mlirt.tools.report.graph import Graph
from mlirt.tools.report.kernel_texts import KernelText, kernel_texts
from mlirt.tools.report.network_graph import network_graph
from mlirt.tools.report.subject import BuildFacts
from mlirt.tools.report.tactic_choices import TacticChoice, tactic_choices
from mlirt.tools.report.tensor_scales import TensorScale, scales_in

_BORDER = "verify-legality"
_LOWERS = "convert-fused-to-kernel"
"""In front of it the network is one of fused ops."""


@dataclass
class BuildRecorder(Remarks):
    """What a report says of a build; the time that recording takes is not counted."""

    target: str = "cpu"
    before: Graph | None = None
    fused: Graph | None = None
    spans: list[Span] = field(default_factory=list[Span])
    kernels: dict[str, KernelText] = field(default_factory=dict[str, KernelText])
    tactic_times: dict[tuple[str, ...], Mapping[str, float]] = field(
        default_factory=dict[tuple[str, ...], Mapping[str, float]]
    )
    tactics: list[TacticChoice] = field(default_factory=list[TacticChoice])
    scales: list[TensorScale] = field(default_factory=list[TensorScale])
    compiled: list[str] = field(default_factory=list[str])
    """The kernels whose machine code was not in the cache."""
    is_cached: bool = False
    """Whether the whole plan was."""
    calibration: Calibration | None = None
    """What the scales come from, where that is known."""
    layer_precisions: Mapping[str, str] = field(default_factory=dict[str, str])
    """What layers were asked to compute in."""
    _began: float = field(default_factory=time.perf_counter)
    _spent: float = 0.0
    _phase: int = -1
    _step: tuple[str, float] | None = None

    @contextmanager
    def running(self, name: str, module: ModuleOp, ctx: Context | None = None) -> Generator[None]:
        """A pass runs meanwhile."""
        if self._phase < 0:
            self._end_step(self._now())
        with self._recording():
            self._enter(name, module, ctx)
        start = self._now()
        with super().running(name, module, ctx):
            yield
        self.spans.append(Span(name, PHASES[self._phase].name, start, self._now()))
        with self._recording():
            self._leave(name, module, ctx)

    def _enter(self, name: str, module: ModuleOp, ctx: Context | None) -> None:
        if self._phase < 0:
            first = [number for number, phase in enumerate(PHASES) if any(one.pass_name == name for one in phase.steps)]
            self._phase = first[0] if first else 0
            self.before = network_graph(module, "Before: the network as it was read")
        if name == _LOWERS:
            self.fused = network_graph(module, "Fused: an op for what is computed together")
            if isinstance(ctx, RtContext):
                self.tactics = tactic_choices(module, ctx, self.target, self.tactic_times)

    def _leave(self, name: str, module: ModuleOp, ctx: Context | None) -> None:
        if name != _BORDER:
            return
        if PHASES[self._phase].name == "cleanup" and isinstance(ctx, RtContext):
            self.scales = scales_in(module, ctx)
        if PHASES[self._phase].name == "memory":
            self.kernels = kernel_texts([op for op in module.body.block.ops if isinstance(op, FuncOp)], self.target)
        self._phase = min(self._phase + 1, len(PHASES) - 1)

    def measured(self, ops: Sequence[Operation], times: Mapping[str, float]) -> None:
        """Tactics of equal ops were measured."""
        known = {name: time for name, time in times.items() if 0 <= time < float("inf")}
        self.tactic_times |= {(op.name, *names(op.location)): known for op in ops}

    def progress(self, text: str, done: int, total: int) -> None:
        """A report of what the build is at."""
        what, _, detail = text.partition(" (")
        if text == TAKEN:
            self.is_cached = True
        if what == "compiling kernels" and detail:
            self.compiled.append(detail.rstrip(")"))
        if self._step is None or self._step[0] != what:
            now = self._now()
            self._end_step(now)
            self._step = what, now

    def close(self) -> None:
        """The build is over."""
        self._end_step(self._now())

    def facts(self, nodes: Sequence[tuple[str, str]] = ()) -> BuildFacts:
        """What a page needs of it; `nodes` are those of the model."""
        graphs = [graph for graph in (self.before, self.fused) if graph is not None]
        found = (self.spans, self.tactics, self.remarks, self.compiled)
        return BuildFacts(graphs, nodes, *found, self.is_cached, self.scales, self.calibration)

    def _end_step(self, now: float) -> None:
        what, start = self._step or ("reading the network", 0.0)
        passes = [span for span in self.spans if span.start >= start]
        if not passes and (self._step or self._phase < 0):
            self.spans.append(Span(what, "build", start, now))
        self._step = "", now

    def _now(self) -> float:
        return time.perf_counter() - self._began - self._spent

    @contextmanager
    def _recording(self) -> Generator[None]:
        start = time.perf_counter()
        yield
        self._spent += time.perf_counter() - start
