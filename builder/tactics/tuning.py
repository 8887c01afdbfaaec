"""What a build needs to choose tactics on this machine: its device, if there is one, and the file of known times."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from mlirt.builder.tactics.selection import CALLS, Tuning
from mlirt.builder.tactics.tactic_sources import features_of_sources, open_sources
from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.errors import InvalidInputError, MlirtError

ROUNDS = 7

if TYPE_CHECKING:
    from mlirt.builder.config.build_config import BuildConfig
    from mlirt.builder.tactics.algorithm_selector import AlgorithmSelector
    from mlirt.builder.tactics.device_timer import Timer


@contextmanager
def tuning(
    cache: TimingCache | str | os.PathLike[str] | None = None,
    selector: AlgorithmSelector | None = None,
    target: str = "cuda",
    *,
    heuristic: bool = False,
    calls: int = CALLS,
    rounds: int = ROUNDS,
    sources: Iterable[str] = (),
    reject_empty: bool = False,
    workspace: int | None = None,
) -> Generator[Tuning]:
    """The choice of tactics for one build; a cache that is a file is written, with what is new, when the build is over.

    With `heuristic`, or without a device, nothing is measured. Else a time is the median of so many `rounds`, on a CPU
    the least of them, each over so many `calls`. `sources` are the libraries beside our own kernels whose tactics are
    measured too. With `reject_empty` a selector has to allow something for each layer. `workspace` is the most bytes
    beside its tensors that a layer may take.
    """
    if calls < 1 or rounds < 1:
        raise InvalidInputError(f"tactics are measured in {rounds} rounds of {calls} calls: expected at least one each")
    measuring = device_timer if target == "cuda" else processor_timer
    timer, libraries = None if heuristic else measuring(rounds), features_of_sources(sources)
    if timer is not None:
        open_sources(libraries)
    own = TimingCache() if cache is None else cache if isinstance(cache, TimingCache) else TimingCache.load(cache)
    before = own.serialize()
    yield Tuning(timer, own, selector, reject_empty, workspace, calls, libraries)
    if isinstance(cache, str | os.PathLike) and own.serialize() != before:
        own.save(cache)


def tuning_of(config: BuildConfig, target: str) -> AbstractContextManager[Tuning]:
    """The choice of tactics that a configuration asks for; on a `cpu` nothing is measured unless `cpu_timing` asks for
    it. Raises `InvalidInputError` where it does, and code is for another machine.
    """
    on_device = target == "cuda"
    return tuning(
        config.timing_cache if on_device or config.cpu_timing else None,
        config.algorithm_selector,
        target,
        heuristic=config.heuristic if on_device else not config.cpu_timing,
        calls=config.avg_timing_iterations,
        rounds=config.min_timing_iterations,
        sources=config.tactic_sources if on_device else (),
        reject_empty=config.reject_empty_algorithms,
        workspace=config.workspace,
    )


def processor_timer(rounds: int = ROUNDS) -> Timer:
    """Measures on this machine's processors; raises `InvalidInputError` where code for others is asked for."""
    from mlirt.builder.device_choice import asked_for, asked_processor
    from mlirt.builder.host import cpu_target
    from mlirt.builder.tactics.cpu_timer import CpuTimer
    from mlirt.dialects.processor_files import HOST

    named = asked_for("cpu") or next((one for one in asked_processor() if one != HOST), "")
    if named:
        raise InvalidInputError(
            f"cpu_timing: tactics are measured on this machine's processors, but code for {named} is asked for; leave "
            "one of the two out"
        )
    return CpuTimer(cpu_target(), rounds)


def this_place() -> str | None:
    """What a timing cache calls times of this machine; None where there is no device."""
    from mlirt.builder.tactics.measurement import place_of

    timer = device_timer()
    return None if timer is None else place_of(timer)


def device_timer(rounds: int = ROUNDS) -> Timer | None:
    """Measures on the CUDA device of this machine; None where there is none that runs our code."""
    from mlirt.builder.tactics.device_timer import DeviceTimer
    from mlirt.dialects.gpu_architectures import architecture_names
    from mlirt.runtime.cuda_architectures import choose_architecture
    from mlirt.runtime.cuda_driver import open_driver

    try:
        driver = open_driver()
        driver.activate()
        architecture = choose_architecture(architecture_names(), driver.compute_capability())
    except MlirtError:
        return None
    return None if architecture is None else DeviceTimer(driver, architecture, rounds)
