"""Decides how each fused op is lowered, and writes it on the op: the fastest way of those measured, or estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from mlirt.builder.tactics.algorithm_selector import Algorithm, AlgorithmContext
from mlirt.builder.tactics.footprint import touched_bytes
from mlirt.builder.tactics.measurement import Report, times_of
from mlirt.builder.tactics.sites import Site, find_sites
from mlirt.builder.tactics.timing_cache import Times, TimingCache
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.locations import name_of
from mlirt.dialects.target import Target
from mlirt.dialects.typical_sizes import typical_values
from mlirt.errors import InvalidInputError
from mlirt.passes.lowering.tactics import TACTIC, Candidate

if TYPE_CHECKING:
    from mlirt.builder.tactics.algorithm_selector import AlgorithmSelector
    from mlirt.builder.tactics.device_timer import Timer

CALLS = 10
"""In one measurement, so that the time between two measurements does not count."""

_NEVER = float("inf")


@dataclass
class Tuning:
    """How tactics are chosen: by `timer`, or by their estimates without one; times are kept in `cache`."""

    timer: Timer | None = None
    cache: TimingCache = field(default_factory=TimingCache)
    selector: AlgorithmSelector | None = None
    calls: int = CALLS
    sources: frozenset[str] = frozenset()
    """The features of a target that stand for libraries which may be used."""


def select_tactics(module: ModuleOp, ctx: RtContext, target: Target, tuning: Tuning, report: Report) -> None:
    """Name the tactic of every op that has more than one, on a network after the phase `layout`."""
    if tuning.timer is None and tuning.selector is None:
        return  # lowering follows the estimates by itself
    report("looking for tactics", 0, 1)
    sites = find_sites(module, ctx, target)
    known = typical_values(entry_function(module).body.block)
    measured = [Times() for _ in sites]
    if tuning.timer is not None:
        cold = touched_bytes(module, known) > tuning.timer.cache_bytes
        measured = times_of(sites, ctx, target, known, tuning.timer, tuning.cache, report, tuning.calls, cold=cold)
    contexts: list[AlgorithmContext] = []
    taken: list[Algorithm] = []
    for site, times in zip(sites, measured, strict=True):
        sizes: dict[str, int] = {}
        if tuning.selector is not None:
            from mlirt.builder.tactics.trial import trials

            names = [one.name for one in site.candidates]
            sizes = {trial.candidate: trial.workspace for trial in trials(site.ops[0], names, ctx, target, known)}
        for op, algorithm in zip(site.ops, _chosen(site, times, tuning.selector, sizes), strict=True):
            if algorithm.name != site.candidates[0].name:  # lowering takes the first by itself
                op.attributes[TACTIC] = StringAttr(algorithm.name)
            contexts.append(_context(op))
            taken.append(algorithm)
    if tuning.selector is not None:
        tuning.selector.report_algorithms(contexts, taken)


def _chosen(
    site: Site, times: Times, selector: AlgorithmSelector | None, workspaces: Mapping[str, int]
) -> list[Algorithm]:
    """The algorithm of each op of a site."""
    fast = [one for one in site.candidates if times.get(one.name, _NEVER) < _NEVER]
    offered = [
        Algorithm(one.name, _milliseconds(one, times), workspaces.get(one.name, 0)) for one in fast or site.candidates
    ]
    chosen: list[Algorithm] = []
    for op in site.ops:
        allowed = offered
        if selector is not None:
            allowed = _allowed(selector, _context(op), offered) or offered
        chosen.append(min(allowed, key=lambda one: (one.timing_msec < 0, one.timing_msec, one.name)))
    return chosen


def _milliseconds(one: Candidate, times: Times) -> float:
    if one.name in times:
        return times[one.name] / 1e3
    return -1.0 if one.cost in (None, _NEVER) else one.cost / 1e3


def _allowed(selector: AlgorithmSelector, context: AlgorithmContext, offered: Sequence[Algorithm]) -> list[Algorithm]:
    indices = list(selector.select_algorithms(context, offered))
    wrong = [index for index in indices if not 0 <= index < len(offered)]
    if wrong:
        raise InvalidInputError(
            f"layer {context.name}: the algorithm selector chose number {wrong[0]} of {len(offered)} algorithms; "
            f"expected numbers from 0 to {len(offered) - 1}"
        )
    return [offered[index] for index in indices]


def _context(op: Operation) -> AlgorithmContext:
    inputs, outputs = (tuple(str(value.type) for value in values) for values in (op.operands, op.results))
    return AlgorithmContext(name_of(op), inputs, outputs)
