"""The part `lengths` of bench/growth.py: decoders that write word after word, with lengths that grow by one each time.

Microseconds of the caller's CPU in `run`, medians: "new" with a length that is new, "again" the same once more, and
"more" the median of the difference. "Host" is the same of an engine whose kernels do nothing. Words a second, caches
handed from run to run, are the best of rounds that mlirt and onnxruntime take by turns in one process.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

from cpu_peer import cpu_session
from decoder_caches import CACHES, Feeds, Sizes, decoder_with, feeds_of
from growth_fit import numbers

import mlirt
from mlirt.runtime.cpu_job import caller_code
from mlirt.runtime.engine import Engine

Run = Callable[[Feeds], dict[str, Any]]
_FIRST, _WORDS, _WARM_UP = 96, 160, 24


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--layers", type=numbers, default=[6, 12, 24], help="default: 6,12,24")
    parser.add_argument("--bits", type=numbers, default=[4, 32], help="of the weights; default: 4,32")
    parser.add_argument("--caches", nargs="+", choices=CACHES, default=list(CACHES))
    parser.add_argument("--width", type=int, default=128, help="of a word; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--alone", action="store_true", help="without onnxruntime")


def run(arguments: argparse.Namespace) -> None:
    for cache in arguments.caches:
        for layers in arguments.layers:
            for bits in arguments.bits:
                _measure(arguments, cache, _sizes(arguments.width, layers, bits))


def _sizes(width: int, layers: int, bits: int) -> Sizes:
    heads = width // 32
    return Sizes(layers=layers, heads=heads, key_heads=max(1, heads // 2), hidden=2 * width, bits=bits)


def _measure(arguments: argparse.Namespace, cache: str, sizes: Sizes) -> None:
    model = decoder_with(cache, sizes)
    engine = mlirt.compile(model, target="cpu", threads=arguments.threads)
    assert isinstance(engine, Engine)
    name = f"{cache} {sizes.layers} layers {sizes.bits} bits"
    print(f"{name}: {len(engine.plan.manifest.launches)} launches", flush=True)
    idle = _without_kernels(model, arguments.threads)
    print(f"  host: {_new_and_again(idle, cache, sizes, _FIRST)} us", flush=True)
    print(f"  run: {_new_and_again(engine, cache, sizes, _FIRST)} us", flush=True)
    runs: dict[str, Run] = {"mlirt": engine.run}
    if not arguments.alone:
        session = cpu_session(model, threads=arguments.threads)
        names = [one.name for one in session.get_outputs()]
        runs["onnxruntime"] = lambda feeds: dict(zip(names, session.run(None, feeds), strict=True))
    speeds: dict[str, list[float]] = {one: [] for one in runs}
    for _ in range(arguments.rounds):
        for one, run_one in runs.items():
            speeds[one].append(_words_per_second(run_one, cache, sizes))
    found = {one: max(values) for one, values in speeds.items()}
    told = ", ".join(f"{one} {value:.0f}" for one, value in found.items())
    ratio = "" if arguments.alone else f", ratio {found['mlirt'] / found['onnxruntime']:.2f}"
    kept = engine.context.shape_cache
    print(f"  words a second: {told}{ratio}; kept: {kept.programs} programs, {kept.bytes / 1024:.0f} KiB", flush=True)


def _new_and_again(engine: Engine, cache: str, sizes: Sizes, first: int) -> str:
    new: list[float] = []
    again: list[float] = []
    for number in range(_WARM_UP + _WORDS):
        feeds = feeds_of(cache, sizes, first + number)
        times = [_microseconds(lambda feeds=feeds: engine.run(feeds)) for _ in range(2)]
        if number >= _WARM_UP:
            new.append(times[0])
            again.append(times[1])
    more = statistics.median(a - b for a, b in zip(new, again, strict=True))
    return f"new {statistics.median(new):.0f}, again {statistics.median(again):.0f}, more {more:.0f}"


def _without_kernels(model: Any, threads: int) -> Engine:
    """An engine that prepares its runs, and then does nothing."""
    engine = mlirt.compile(model, target="cpu", threads=threads)
    assert isinstance(engine, Engine)
    device: Any = engine._device  # pyright: ignore[reportPrivateUsage]
    device.on_caller, device.run = caller_code(None), _nothing
    return engine


def _nothing(job: object, stop: object = None) -> int:
    """No row has stopped a run that has not begun."""
    return 0


def _words_per_second(run_one: Run, cache: str, sizes: Sizes) -> float:
    feeds = feeds_of(cache, sizes, _FIRST)
    start = time.perf_counter()
    for number in range(_WORDS):
        found = run_one(feeds)
        fresh = feeds_of(cache, sizes, 0 if cache != "whole" else _FIRST + number + 1)
        if cache == "grouped":
            fresh["attention_mask"] = feeds_of(cache, sizes, _FIRST + number + 1)["attention_mask"]
        for name in fresh:
            if name.startswith("past_key_values"):
                fresh[name] = found["present" + name.removeprefix("past_key_values")]
        feeds = fresh
    return _WORDS / (time.perf_counter() - start)


def _microseconds(call: Callable[[], object]) -> float:
    start = time.thread_time_ns()
    call()
    return (time.thread_time_ns() - start) / 1e3
