"""Decides how each fused op is lowered, and writes it on the op: the fastest way of those measured, or estimated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation

from mlirt.builder.tactics.algorithm_selector import Algorithm, AlgorithmContext
from mlirt.builder.tactics.footprint import given_bytes, touched_bytes
from mlirt.builder.tactics.layer_description import context_of, tensors_of
from mlirt.builder.tactics.sites import Site, find_sites
from mlirt.builder.tactics.timing_cache import REFUSED, Times, TimingCache
from mlirt.dialects.context import RtContext
from mlirt.dialects.fused.fused_op import FusedOp
from mlirt.dialects.interpreter import entry_function
from mlirt.dialects.locations import name_of
from mlirt.dialects.target import Target
from mlirt.dialects.typical_sizes import Bounds, named_bounds, typical_values
from mlirt.errors import CompileError, InvalidInputError
from mlirt.kernels.lib.tactics.registry import TACTIC, Candidate
from mlirt.passes.remarks import recorder

if TYPE_CHECKING:
    from mlirt.builder.tactics.algorithm_selector import AlgorithmSelector
    from mlirt.builder.tactics.device_timer import Timer
    from mlirt.builder.tactics.measurement import Report

CALLS = 10
"""In one measurement, so that the time between two measurements does not count."""

_NEVER = float("inf")


@dataclass
class Tuning:
    """How tactics are chosen: by `timer`, or by their estimates without one; times are kept in `cache`."""

    timer: Timer | None = None
    cache: TimingCache = field(default_factory=TimingCache)
    selector: AlgorithmSelector | None = None
    reject_empty: bool = False
    """Whether a selector that allows nothing for a layer is an error; else it allows all."""
    workspace: int | None = None
    """The most bytes beside the tensors that a layer may take; None for any number."""
    calls: int = CALLS
    sources: frozenset[str] = frozenset()
    """The features of a target that stand for libraries which may be used."""
    replay: Sequence[str] | None = None
    """What `tactics_of` gave for an earlier build of the network, to be taken again."""


_INSUFFICIENT = (
    "Some tactics do not have sufficient workspace memory to run. Increasing workspace size will enable more tactics, "
    "please check verbose output for requested sizes."
)


def select_tactics(module: ModuleOp, ctx: RtContext, target: Target, tuning: Tuning, report: Report) -> None:
    """Name the tactic of every op that has more than one, on a network after the phase `layout`."""
    if tuning.replay is not None and _replayed(module, tuning.replay):
        return
    if tuning.timer is None and tuning.selector is None and tuning.workspace is None:
        return  # lowering follows the estimates by itself
    report("looking for tactics", 0, 1)
    sites = find_sites(module, ctx, target, 2 if tuning.selector is None and tuning.workspace is None else 1)
    block = entry_function(module).body.block
    known, bounds = typical_values(block), named_bounds(block)
    first = {op: site.candidates[0].name for site in sites for op in site.ops}  # without limits
    lowerings: dict[Operation, _Lowering] = {}

    def lowering_of(site: Site) -> _Lowering:
        """The same for a site of which ways were left out."""
        if site.ops[0] not in lowerings:
            lowerings[site.ops[0]] = _Lowering(site, ctx, target, known)
        return lowerings[site.ops[0]]

    if tuning.workspace is not None:
        limited = [_small_enough(site, tuning.workspace, lowering_of(site)) for site in sites]
        if any(len(one.candidates) < len(site.candidates) for one, site in zip(limited, sites, strict=True)):
            report(_INSUFFICIENT, 0, 1)
        sites = limited
    measured = dict.fromkeys(sites, Times())
    if tuning.timer is not None:
        from mlirt.builder.tactics.measurement import times_of  # and with it the compiler for GPUs

        cold = touched_bytes(module, known) > tuning.timer.cache_bytes
        several = [site for site in sites if len(site.candidates) > 1]
        times = times_of(several, ctx, target, known, tuning.timer, tuning.cache, report, tuning.calls, cold=cold)
        measured.update(zip(several, times, strict=True))
    taken: dict[Operation, Algorithm] = {}
    contexts = _contexts([op for op in module.walk() if op in first], known, bounds)
    watcher = recorder()
    for site, times in measured.items():
        if watcher is not None:
            watcher.measured(site.ops, times)
        offered, lowers = _offered(site, times), None
        if tuning.selector is not None:
            lowers = lowering_of(site)
            offered = _described(site, offered, lowers, known)
        for op in site.ops:
            taken[op] = _selected(tuning, contexts[op], offered, lowers)
            if taken[op].name != _usual(tuning, first[op], offered):
                op.attributes[TACTIC] = StringAttr(taken[op].name)
    if tuning.selector is not None:
        order = [op for op in module.walk() if op in taken]
        tuning.selector.report_algorithms([contexts[op] for op in order], [taken[op] for op in order])


def _usual(tuning: Tuning, first: str, offered: Sequence[Algorithm]) -> str:
    """The way that need not be named, as lowering comes to it by itself: the first one, or where nothing is measured
    or limited the first that lowers the op alone. Where its tensors lie in others it may decline; the next is taken.
    """
    is_open = tuning.timer is None and tuning.workspace is None and bool(offered)
    return offered[0].name if is_open else first


def _contexts(ops: Sequence[Operation], known: Mapping[str, int], bounds: Bounds) -> dict[Operation, AlgorithmContext]:
    """The context of each op, under a name of its own: a copy that was made for a layer has the layer's name, and a
    record of tactics is by name.
    """
    contexts: dict[Operation, AlgorithmContext] = {}
    used: set[str] = set()
    for op in ops:
        context, number = context_of(op, known, bounds), 1
        name = context.name
        while name in used:
            number += 1
            name = f"{context.name}_{number}"
        used.add(name)
        contexts[op] = replace(context, name=name)
    return contexts


def tactics_of(module: ModuleOp) -> list[str]:
    """The tactic of each fused op in order; empty where lowering finds it by itself."""
    named = [op.attributes.get(TACTIC) for op in module.walk() if isinstance(op, FusedOp)]
    return [name.data if isinstance(name, StringAttr) else "" for name in named]


def _replayed(module: ModuleOp, tactics: Sequence[str]) -> bool:
    """Name the tactics of an earlier build; False, with nothing done, where the network became another one."""
    ops = [op for op in module.walk() if isinstance(op, FusedOp)]
    if len(ops) != len(tactics):
        return False
    for op, name in zip(ops, tactics, strict=True):
        if name:
            op.attributes[TACTIC] = StringAttr(name)
    return True


def _offered(site: Site, times: Times) -> list[Algorithm]:
    """The ways that ran, or where none did or none was measured all but those that were refused.

    Raises `CompileError` where all were refused.
    """
    if site.free:
        return [Algorithm(site.candidates[0].name, 0.0, 0)]
    fast = [one for one in site.candidates if 0 <= times.get(one.name, _NEVER) < _NEVER]
    others = [one for one in site.candidates if times.get(one.name) != REFUSED]
    if not others:
        raise CompileError(
            f"layer {name_of(site.ops[0])}: each of {len(site.candidates)} tactics differs from the others, or gives "
            "other results each time; the warnings say how"
        )
    return [Algorithm(one.name, _milliseconds(one, times), 0) for one in fast or others]


_AMPLE = 4


def is_ample(module: ModuleOp, limit: int) -> bool:
    """Whether a limit of memory beside the tensors is beyond what any tactic takes, so that none has to be tried: four
    times its inputs, constants and largest tensors.
    """
    known = typical_values(entry_function(module).body.block)
    return limit >= _AMPLE * (touched_bytes(module, known) + given_bytes(module, known))


class _Lowering:
    """How the op of a site is lowered by its ways, each tried once and only where somebody wants to know."""

    def __init__(self, site: Site, ctx: RtContext, target: Target, known: Mapping[str, int]) -> None:
        from mlirt.builder.tactics.trial import Subject

        self.is_free = site.free
        self._subject = Subject(site.ops[0], ctx, target, known)
        self._found: dict[str, int | None] = {}

    def bytes_of(self, name: str) -> int:
        """The bytes beside the tensors; 0 where nothing is launched, or the op is not lowered alone."""
        return self._bytes(name) or 0

    def declines(self, name: str) -> bool:
        """Whether a way does not lower the op."""
        return not self.is_free and self._bytes(name) is None

    def _bytes(self, name: str) -> int | None:
        if self.is_free:
            return 0
        if name not in self._found:
            trial = self._subject.trial(name)
            self._found[name] = None if trial is None else trial.workspace
        return self._found[name]


def _described(
    site: Site, offered: Sequence[Algorithm], lowers: _Lowering, known: Mapping[str, int]
) -> list[Algorithm]:
    """The same ways with the memory that they take, and how the tensors of the layer lie in memory.

    Those without an estimate say only by trying whether they lower the layer; where they decline it they are left out,
    unless all do.
    """
    tensors, priced = tensors_of(site.ops[0], known), {one.name for one in site.candidates if one.cost is not None}
    shown = [replace(one, memory=partial(lowers.bytes_of, one.name), tensors=tensors) for one in offered]
    return [one for one in shown if one.name in priced or not lowers.declines(one.name)] or shown


def _small_enough(site: Site, limit: int, lowers: _Lowering) -> Site:
    """The site with the ways that take no more memory beside the tensors; raises `CompileError` where there is none.

    Where no way lowers the op alone, all are taken to need nothing.
    """
    names = [one.name for one in site.candidates]
    sizes = {name: lowers.bytes_of(name) for name in names if not lowers.declines(name)} or dict.fromkeys(names, 0)
    if min(sizes.values()) > limit:
        raise CompileError(
            f"could not find any implementation for node {name_of(site.ops[0])}: the smallest workspace of "
            f"{len(sizes)} ways is {min(sizes.values())} bytes, the limit is {limit}; raise it by "
            "IBuilderConfig.set_memory_pool_limit(MemoryPoolType.WORKSPACE, ..)"
        )
    fit = tuple(one for one in site.candidates if sizes.get(one.name, limit + 1) <= limit)
    return replace(site, candidates=fit)


def _selected(
    tuning: Tuning, context: AlgorithmContext, offered: Sequence[Algorithm], lowers: _Lowering | None
) -> Algorithm:
    """The fastest of those that the caller allows; without a caller and times, the one that lowering tries first.

    Of the caller's ways one that declines the layer is not taken, unless all do where it stands alone.
    """
    if tuning.selector is None:
        return offered[0] if tuning.timer is None else _fastest(offered, tuning.timer.margin)
    allowed = _allowed(tuning.selector, context, offered)
    if not allowed and tuning.reject_empty:
        raise InvalidInputError(
            f"layer {context.name}: the algorithm selector allows none of {len(offered)} algorithms, and "
            "REJECT_EMPTY_ALGORITHMS is set"
        )
    left = sorted(allowed or offered, key=_rank)
    return next((one for one in left if lowers is None or not lowers.declines(one.name)), left[0])


def _fastest(algorithms: Sequence[Algorithm], margin: float) -> Algorithm:
    """The one with the least time; of those without a time, and where it is not faster by the `margin`, the one that
    lowering tries first.
    """
    first, best = algorithms[0], min(algorithms, key=_rank)
    return first if 0 <= (1 - margin) * first.timing_msec <= best.timing_msec else best


def _rank(one: Algorithm) -> tuple[bool, float]:
    return one.timing_msec < 0, one.timing_msec


def _milliseconds(one: Candidate, times: Times) -> float:
    if times.get(one.name, REFUSED) != REFUSED:
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
    return [offered[index] for index in sorted(indices)]
