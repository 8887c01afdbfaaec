"""A network built with a pass and without it: what it computes, what it costs, and what the passes say of it."""

from __future__ import annotations

import re
from argparse import Namespace
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from mlirt.builder.build import BuildOptions, build_plan
from mlirt.builder.host import cpu_target, cuda_target
from mlirt.dialects.interpreter import entry_function, input_names
from mlirt.dialects.locations import name_of
from mlirt.dialects.plan.ops import LaunchOp
from mlirt.dialects.symbol_values import bind
from mlirt.passes.phases import TargetMachine
from mlirt.passes.pipeline import PipelineOptions, run_phases
from mlirt.passes.remarks import PassStatistics, Remarks, recording
from mlirt.runtime.engine import Engine
from mlirt.tools.debugging.case import Case
from mlirt.tools.debugging.differences import worst
from mlirt.tools.lab.costs import Costs, costs_of
from mlirt.tools.lab.experiment import Experiment, Side

if TYPE_CHECKING:
    import numpy as np

    from mlirt.runtime.plan_file import Plan

    Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_JOINED = " + "  # how names of layers that were fused are told in one


@dataclass(frozen=True)
class Variant:
    """One side. `plan` is None where there is no device, and `outputs` are interpreted then."""

    costs: Costs
    plan: Plan | None
    outputs: Mapping[str, Array]
    remarks: Remarks


@dataclass(frozen=True)
class Off:
    """How far one output is off, as a share of its largest number: the one that is furthest off."""

    output: str
    error: float

    @classmethod
    def of(cls, found: Mapping[str, Array], expected: Mapping[str, Array]) -> Off:
        return cls(*worst(found, expected))


@dataclass(frozen=True)
class Comparison:
    """Both sides of a network. Outputs are compared with the interpreted network, and with each other."""

    case: Case
    sides: Mapping[Side, Variant]
    off_reference: Off
    off_without: Off
    baseline_off: Off
    """The side without against the interpreted network."""

    @property
    def is_same(self) -> bool:
        """Whether both sides launch the same kernels on the same buffers, so that there is nothing to measure."""
        one, other = (side.plan for side in self.sides.values())
        return one is not None and other is not None and _launched(one) == _launched(other)

    def counts(self, passes: tuple[str, ...]) -> PassStatistics:
        """What the passes did on the side with them."""
        found = self.sides["with"].remarks.counts
        total = PassStatistics()
        for one in (found[name] for name in passes if name in found):
            for key, value in vars(one).items():
                setattr(total, key, getattr(total, key) + value)
        return total

    def reasons(self, passes: tuple[str, ...]) -> Counter[tuple[str, str]]:
        """How often they said what: a kind, and a reason in which layers of this network have no names."""
        said = [one for one in self.sides["with"].remarks.remarks if one.pass_name in passes]
        layers = _any_of([*(one.layer for one in said), *map(name_of, self.case.module.walk())])
        return Counter((one.kind, layers.sub("..", one.reason)) for one in said)


def compare(experiment: Experiment, arguments: Namespace, model: str, device: bool, used: set[str]) -> Comparison:
    """Build a network both ways and run both on the same random inputs; without a device they are interpreted.

    The names of its inputs are added to `used`; shapes for other inputs are those of other networks.
    """
    sides: dict[Side, Variant] = {}
    case: Case | None = None
    expected: dict[str, Array] = {}
    for side in ("without", "with"):
        with experiment.side(side) as pipeline:
            if case is None or not experiment.needed:
                case = _case(arguments, model, used)
            pipeline.check(case.target, case.precision, case.first)
            case = replace(case, pipeline=pipeline)
            if not sides:
                expected = case.interpreted(case.module)
            sides[side] = _variant(case, device)
    assert case is not None
    found, without = sides["with"].outputs, sides["without"].outputs
    return Comparison(case, sides, Off.of(found, expected), Off.of(found, without), Off.of(without, expected))


def _case(arguments: Namespace, model: str, used: set[str]) -> Case:
    flags: dict[str, object] = {
        **vars(arguments),
        "model": model,
        "weights": None,
        "input_arrays": [],
        "pipeline_edit": [],
    }
    return Case.of(Namespace(**flags), used)


def _variant(case: Case, device: bool) -> Variant:
    target = cpu_target() if case.target == "cpu" else cuda_target(case.precision)
    options = PipelineOptions(target.kind, case.precision, TargetMachine.of(target), pipeline=case.pipeline)
    found, plan = Remarks(statistics=True), None
    laid_out = case.module.clone()
    if device:
        settings = BuildOptions(case.precision, first=case.first, pipeline=case.pipeline, temporary=True)
        with recording(found):
            plan = build_plan(case.module.clone(), case.ctx, case.target, settings)
        run_phases(laid_out, case.ctx, case.first, "layout", options)
        outputs, launches = dict(Engine(plan).run(case.feeds)), len(plan.manifest.launches)
    else:
        with recording(found):
            run_phases(laid_out, case.ctx, case.first, "layout", options)
            lowered = laid_out.clone()
            found.forget_ops()
            run_phases(lowered, case.ctx, "lowering", "memory", options)
        outputs, launches = case.interpreted(laid_out), sum(isinstance(op, LaunchOp) for op in lowered.walk())
    return Variant(costs_of(laid_out, launches, case.ctx, target, case.precision, _sizes(case)), plan, outputs, found)


def _sizes(case: Case) -> dict[str, int]:
    """The value of each symbol for the inputs of the case."""
    function = entry_function(case.module)
    values: dict[str, int] = {}
    for name, argument in zip(input_names(function), function.body.block.args, strict=True):
        if name in case.feeds:
            bind(argument.type, case.feeds[name].shape, values, f"input {name!r}")
    return values


def _any_of(layers: Iterable[str]) -> re.Pattern[str]:
    """The names of layers, and of those that were joined."""
    names = {name for joined in layers for name in joined.split(_JOINED)}
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    one = rf"(?<![\w.])(?:{'|'.join(longest_first)})(?![\w])"
    return re.compile(rf"{one}(?:{re.escape(_JOINED)}{one})*")


def _launched(plan: Plan) -> object:
    """All that the time of a plan follows from: its manifest, but for who built it, and its code."""
    manifest = {key: value for key, value in plan.manifest_json.items() if key not in ("info", "layers")}
    return manifest, {name: bytes(memoryview(code)) for name, code in plan.sections.items()}
