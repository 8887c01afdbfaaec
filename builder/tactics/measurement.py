"""The times of all candidates of a network: known ones from a cache, the others from the device or the processor."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from mlirt.builder.assemblers.choice import assembler_versions
from mlirt.builder.kernel_cache import sources_digest, versions
from mlirt.builder.tactics.agreement import SAFE, Outcome, judged, tolerance_of
from mlirt.builder.tactics.sites import Site
from mlirt.builder.tactics.timing_cache import REFUSED, Times, TimingCache
from mlirt.builder.tactics.trial import Trial, feeds, trials
from mlirt.dialects.context import RtContext
from mlirt.dialects.locations import name_of
from mlirt.dialects.pass_plugins import active, active_digest
from mlirt.dialects.target import Target
from mlirt.kernels.lib.tactics.registry import Candidate
from mlirt.version import __version__

if TYPE_CHECKING:
    from mlirt.builder.tactics.device_timer import Timer
    from mlirt.builder.tactics.plan_code import Codes
    from mlirt.builder.tactics.trial import Shape
    from mlirt.dialects.tensor_op import Array
    from mlirt.runtime.plan_file import Plan

Report = Callable[[str, int, int], None]

_MAX_TRIALS = 8  # of one op, the best by estimate
_MIN_TRIALS = 2  # of one op with one tactic
_FEW_CALLS = 2
_SHORT_MICROSECONDS, _LONG_MICROSECONDS = 5.0, 500.0  # microseconds
_NEVER = float("inf")


def times_of(
    sites: Sequence[Site],
    ctx: RtContext,
    target: Target,
    known: Mapping[str, int],
    timer: Timer,
    cache: TimingCache,
    report: Report,
    calls: int,
    *,
    cold: bool,
) -> list[Times]:
    """The times of the candidates of each site: from the cache, and where it lacks some, from the device.

    With `cold`, weights are measured as they are when other layers have emptied the device's cache.
    """
    place = place_of(timer)
    texts = [f"{site.text}; weights {'cold' if cold else 'warm'}" for site in sites]
    wanted = [[one.name for one in _worth_measuring(site.candidates)] for site in sites]
    found = [cache.get(place, text) for text in texts]
    missing = [[name for name in names if name not in times] for names, times in zip(wanted, found, strict=True)]
    if any(missing):
        made: list[list[Trial]] = []
        with timer.compiler() as compiler:
            for number, (site, names) in enumerate(zip(sites, missing, strict=True)):
                report("lowering candidates", number, len(sites))
                made.append(trials(site.ops[0], names, ctx, target, known) if names else [])
                compiler.take(source for trial in made[-1] for source in trial.sources.values())
            report("compiling candidates", 0, 1)
            codes = compiler.finish()
        device = _Device(ctx, target, known, timer, report, calls, cold)
        measured = device.times(sites, made, codes)
        for text, names, times, new in zip(texts, missing, found, measured, strict=True):
            times.update(dict.fromkeys(names, _NEVER) | new)
            if names:
                cache.put(place, text, {name: times[name] for name in names})
    return [{name: times[name] for name in names} for names, times in zip(wanted, found, strict=True)]


def place_of(timer: Timer) -> str:
    """Where times are measured: the device and what makes kernels for it."""
    brought = f"; plugins {active_digest()}" if active() else ""  # a tactic of theirs may change under its name
    return f"{timer.device}; {_compiler()}, {assembler_versions()}{brought}"


def _worth_measuring(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The best by estimate, and some of each tactic, as estimates of different ones may differ more than the times.

    All of libraries, as nothing is known of them. Those without an estimate may be very slow: they are measured only
    where they would be tried first, where there is little to do, or where the others are those of libraries.
    """
    first = next((place for place, one in enumerate(candidates) if one.cost is not None), 0)
    estimated: list[Candidate] = []
    for place, one in enumerate(one for one in candidates if one.cost is not None):
        alike = sum(other.file == one.file for other in estimated)
        if place < _MAX_TRIALS or one.cost == _NEVER or alike < _MIN_TRIALS:
            estimated.append(one)
    if estimated and _SHORT_MICROSECONDS < (estimated[0].cost or 0) < _NEVER:
        return [*candidates[:first], *estimated]
    return [*estimated, *[one for one in candidates if one.cost is None]]


@dataclass(frozen=True)
class _Device:
    """What measures the trials of one network."""

    ctx: RtContext
    target: Target
    known: Mapping[str, int]
    timer: Timer
    report: Report
    calls: int
    cold: bool

    def times(self, sites: Sequence[Site], made: Sequence[Sequence[Trial]], codes: Codes) -> list[Times]:
        """Measure the trials of one site together; those whose kernels have no code take forever."""
        results: list[Times] = []
        for number, (site, group) in enumerate(zip(sites, made, strict=True)):
            self.report("timing tactics", number, len(sites))
            times = {trial.candidate: _NEVER for trial in group}
            ready = [trial for trial in group if all(source in codes for source in trial.sources.values())]
            refused = self._refused(site, ready, codes) if ready else {}
            times.update(dict.fromkeys(refused, REFUSED))
            ready = [trial for trial in ready if trial.candidate not in refused]
            count = self.calls if (site.candidates[0].cost or 0.0) < _LONG_MICROSECONDS else min(self.calls, _FEW_CALLS)
            measured = self.timer.times(*self._plans(ready, codes, count)) if ready else []
            times.update({trial.candidate: time / count for trial, time in zip(ready, measured, strict=True)})
            results.append(times)
        return results

    def _plans(
        self, ready: Sequence[Trial], codes: Codes, count: int
    ) -> tuple[list[Plan], list[tuple[Shape, ...]], list[list[Array]]]:
        """Plans of so many calls, their shapes and inputs."""
        plans = [
            trial.plan(
                count,
                self.timer.plan_code({name: codes[one] for name, one in trial.sources.items()}),
                cold=self.cold,
            )
            for trial in ready
        ]
        kept: dict[tuple[str, Shape], Array] = {}
        inputs = [feeds(plan, trial.shapes, kept) for plan, trial in zip(plans, ready, strict=True)]
        return plans, [trial.shapes for trial in ready], inputs

    def _refused(self, site: Site, ready: Sequence[Trial], codes: Codes) -> dict[str, str]:
        """The trials that compute something else than the others, or something else each time; it is warned of them."""
        outcomes = self._outcomes(ready, codes)
        tolerance = tolerance_of(site.ops[0], self.target, self.known)
        verdict = judged(outcomes, tolerance)
        if verdict.divided:
            verdict = judged({**outcomes, **self._safe_outcome(site)}, tolerance)
        refused = dict(verdict.refused)
        for name in outcomes if verdict.divided else ():
            refused.setdefault(name, "differs from the others, of which no majority agrees")
        for name, why in refused.items():
            warnings.warn(f"layer {name_of(site.ops[0])}: tactic {name} {why}; it is not used", stacklevel=2)
        return {trial.candidate: refused[trial.candidate] for trial in ready if trial.candidate in refused}

    def _outcomes(self, ready: Sequence[Trial], codes: Codes) -> dict[str, Outcome]:
        """What the trials give; those that lack numbers of the layer are held against themselves alone."""
        found = zip(ready, self.timer.outcomes(*self._plans(ready, codes, 1)), strict=True)
        return {
            trial.candidate: one if trial.computes_the_layer else replace(one, outputs=())
            for trial, one in found
            if one is not None
        }

    def _safe_outcome(self, site: Site) -> dict[str, Outcome]:
        """What plain loops give, where they can compute the layer."""
        if not any(one.name == SAFE for one in site.candidates):
            return {}
        group = trials(site.ops[0], [SAFE], self.ctx, self.target, self.known)
        with self.timer.compiler() as compiler:
            compiler.take(source for trial in group for source in trial.sources.values())
            codes = compiler.finish()
        ready = [trial for trial in group if all(source in codes for source in trial.sources.values())]
        return self._outcomes(ready, codes)


@cache
def _compiler() -> str:
    """What makes kernels of ops and measures them: times of another one do not count."""
    names = ("mlirt.dialects.fused", "mlirt.kernels", "mlirt.passes.lowering", "mlirt.codegen")
    packages = [Path(str(import_module(name).__file__)).parent for name in names]
    builder = Path(__file__).parent.parent
    packages += [Path(__file__).parent, builder / "assemblers"]
    packages += [builder / "numba_cuda_intrinsics", builder / "numba_cpu_intrinsics"]
    sources = sorted(file for package in packages for file in package.rglob("*.py"))
    compilers = ("numba", "llvmlite", "numba-cuda", "nvidia-nvvm", "nvidia-nvjitlink", "nvidia-cuda-nvcc")
    packages = versions(*compilers, "nvidia-cublas", "nvidia-cudnn-cu13", "nvidia-cudnn-cu12")
    return f"mlirt {__version__} {sources_digest(*sources)}, {packages}"
