"""The part `shapes` of bench/growth.py: the first run of a shape, the same shape again, and many shapes by turns.

Milliseconds of `run`. "bound" is the part of a first run that binds the shape, as CPU time of the caller: what follows
from the shapes, and the table of kernels. By turns each shape is run once a round, and what counts is its quickest run;
the ratio is to as many runs of each shape in a row. Kept: the programs that the engine has at the end, and their MiB.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from cpu_peer import cpu_session
from growth_fit import exponent, numbers
from growth_networks import dynamic_images

import mlirt
from mlirt.runtime.cpu import CpuDevice
from mlirt.runtime.engine import Engine
from mlirt.runtime.host_cpu import thread_count
from mlirt.runtime.shape_binding import ShapeBinder

Feeds = dict[str, np.ndarray[Any, np.dtype[Any]]]
Run = Callable[[Feeds], object]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--launches", type=numbers, default=[12, 35, 335, 1500], help="default: 12,35,335,1500")
    parser.add_argument("--shapes", type=numbers, default=[1, 4, 5, 64, 1000], help="default: 1,4,5,64,1000")
    parser.add_argument("--rounds", type=int, default=5, help="runs of each shape; default: %(default)s")
    parser.add_argument("--cache", type=float, metavar="MIB", help="shape_cache_mb of the engine")
    parser.add_argument("--alone", action="store_true", help="without onnxruntime")


def run(arguments: argparse.Namespace) -> None:
    counts: list[int] = []
    bound: list[float] = []
    for launches in arguments.launches:
        model = dynamic_images(launches)
        engine = mlirt.compile(model, target="cpu", shape_cache_mb=arguments.cache)
        assert isinstance(engine, Engine)
        counts.append(len(engine.plan.manifest.launches))
        bound.append(_bound(engine))
        print(f"{counts[-1]} launches: bound in {bound[-1]:.3f} ms, {bound[-1] / counts[-1] * 1e3:.2f} us a launch")
        _measure("mlirt", engine.run, arguments)
        use = engine.context.shape_cache
        print(f"  kept: {use.programs} programs, {use.bytes / 2**20:.1f} of {use.limit / 2**20:.0f} MiB", flush=True)
        if not arguments.alone:
            session = cpu_session(model, threads=thread_count())
            _measure("onnxruntime", lambda feeds, session=session: session.run(None, feeds), arguments)
    print(f"exponent of binding over launches: {exponent(counts, bound):.2f}")


def _feeds(number: int) -> Feeds:
    """Up to 1,200 shapes of about the same size."""
    shape = (1, 4, 8 + number % 40, 8 + number // 40)
    return {"x": np.ones(shape, np.float32)}


def _bound(engine: Engine) -> float:
    """Milliseconds of the CPU to bind a shape that is new, after one that was the first."""
    binder, session = ShapeBinder(engine.plan.manifest), CpuDevice(engine.plan).session()
    times: list[float] = []
    for number in range(30):
        start = time.thread_time()
        session.prepare(binder.bind([_feeds(number)["x"].shape]))
        times.append((time.thread_time() - start) * 1e3)
    return statistics.median(times[1:])


def _measure(name: str, run: Run, arguments: argparse.Namespace) -> None:
    run(_feeds(1199))
    new: list[float] = []
    again: list[float] = []
    for number in range(1100, 1130):
        new.append(_milliseconds(run, _feeds(number)))
        again.append(min(_milliseconds(run, _feeds(number)) for _ in range(arguments.rounds)))
    more = statistics.median(first - later for first, later in zip(new, again, strict=True))
    line = [f"first run of a shape {statistics.median(new):.3f}, {more:.3f} more than the same again"]
    for count in arguments.shapes:
        shapes = [_feeds(number) for number in range(count)]
        rounds = [[_milliseconds(run, feeds) for feeds in shapes] for _ in range(arguments.rounds + 1)][1:]
        turns = sum(map(min, zip(*rounds, strict=True)))
        in_a_row = sum(min([_milliseconds(run, feeds) for _ in range(arguments.rounds + 1)][1:]) for feeds in shapes)
        line.append(f"{count} by turns {turns / count:.3f} ({turns / in_a_row:.2f})")
    print(f"  {name:12s} " + ", ".join(line), flush=True)


def _milliseconds(run: Run, feeds: Feeds) -> float:
    start = time.perf_counter()
    run(feeds)
    return (time.perf_counter() - start) * 1e3
