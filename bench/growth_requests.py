"""The part `requests` of bench/growth.py: many callers, many engines, and what a call costs besides its kernels.

The sides take turns in short blocks, and what counts is the median block; a ratio above 1 means that we are better.
With several callers our engine has as many streams as there are processors or callers, whichever are fewer; the peers
have sessions of one thread (each caller is the worker) and of all threads, and the better one of the two counts.
OpenVINO is measured where it can be imported. "Floor" is microseconds of one call with everything in place, "busy" the
99.9th percentile of `run` beside a process for each processor that never rests, and "idle" the milliseconds of CPU time
for one run each 100 ms. The CPU time of a run tells more than the clock where others use the machine.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx
from cpu_peer import cpu_session
from growth_fit import numbers
from request_networks import NETWORKS, feeds_of

import mlirt
from mlirt.runtime.engine import Engine
from mlirt.runtime.host_cpu import thread_count

Call: TypeAlias = Callable[[], object]
Side: TypeAlias = Callable[[int], Call]
"""Makes what caller number n calls."""

PARTS = ("floor", "busy", "idle", "streams", "callers", "engines")
_FLOOR = ("add", "products", "images_10")
_PAUSE = 0.06  # workers of the side before it spin as long


class Block(NamedTuple):
    """What was measured in one block."""

    rate: float
    """Calls a second."""
    late: float
    """The 99th percentile of milliseconds."""
    work: float
    """Microseconds of CPU time a call, of all threads."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of this part."""
    parser.add_argument("--parts", default=",".join(PARTS), help="default: %(default)s")
    parser.add_argument("--networks", default=",".join(NETWORKS), help="for callers and engines; default: %(default)s")
    parser.add_argument("--callers", type=numbers, default=[1, 2, 4, 16], help="default: 1,2,4,16")
    parser.add_argument("--engines", type=numbers, default=[1, 4, 16], help="default: 1,4,16")
    parser.add_argument("--seconds", type=float, default=0.3, help="of a block; default: %(default)s")
    parser.add_argument("--rounds", type=int, default=5, help="blocks of each side; default: %(default)s")
    parser.add_argument("--alone", action="store_true", help="without peers")


def run(arguments: argparse.Namespace) -> None:
    """Measure the parts asked for."""
    print(f"{thread_count()} threads; OpenVINO {'beside' if find_spec('openvino') else 'is not installed'}", flush=True)
    measured = {
        "floor": _floor,
        "busy": _busy,
        "idle": _idle,
        "streams": _streams,
        "callers": _callers,
        "engines": _engines,
    }
    for part in arguments.parts.split(","):
        print(f"== {part}", flush=True)
        measured[part](arguments)


def _engine(name: str, **options: Any) -> Engine:
    engine = mlirt.compile(NETWORKS[name](), target="cpu", **options)
    assert isinstance(engine, Engine)
    return engine


def _floor(arguments: argparse.Namespace) -> None:
    for name in _FLOOR:
        engine, model, feeds = _engine(name), NETWORKS[name](), feeds_of(NETWORKS[name]())
        outputs = {key: np.empty_like(value) for key, value in engine.run(feeds).items()}
        calls: dict[str, Call] = {
            "run": lambda engine=engine, feeds=feeds: engine.run(feeds),
            "run(outputs=)": lambda engine=engine, feeds=feeds, outputs=outputs: engine.run(feeds, outputs),
            "bound": engine.bind(feeds, outputs),
        }
        if not arguments.alone:
            calls |= _floor_of_peer(model, feeds, outputs)
        blocks: dict[str, list[float]] = {key: [] for key in calls}
        for _ in range(arguments.rounds * 10):
            for key, call in calls.items():
                time.sleep(_PAUSE)
                _microseconds(call, 20)
                blocks[key].append(_microseconds(call))
        texts = [f"{key} {statistics.median(value):.2f} (least {min(value):.2f})" for key, value in blocks.items()]
        print(f"{name:12s} us: " + ", ".join(texts), flush=True)


def _floor_of_peer(
    model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], outputs: Mapping[str, np.ndarray]
) -> dict[str, Call]:
    session = cpu_session(model, threads=thread_count())
    runtime: Any = import_module("onnxruntime")
    binding: Any = session.io_binding()
    for key, value in feeds.items():
        binding.bind_ortvalue_input(key, runtime.OrtValue.ortvalue_from_numpy(value))
    for key, value in outputs.items():
        binding.bind_ortvalue_output(key, runtime.OrtValue.ortvalue_from_numpy(value))
    return {
        "onnxruntime run": lambda: session.run(None, feeds),
        "bound ": lambda: session.run_with_iobinding(binding),
    }


def _microseconds(call: Call, count: int = 200) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return (time.perf_counter() - start) / count * 1e6


def _busy(arguments: argparse.Namespace) -> None:
    sides = _sides("add", 1, arguments)
    with _spinning(thread_count()):
        found: dict[str, list[float]] = {key: [] for key in sides}
        for _ in range(arguments.rounds):
            for key, side in sides.items():
                time.sleep(_PAUSE)
                found[key] += _times(side(0), arguments.seconds)
    for key, times in found.items():
        late = [float(np.percentile(times, percent)) * 1e3 for percent in (50, 99, 99.9)]
        print(f"{key:24s} us: p50 {late[0]:.1f}, p99 {late[1]:.1f}, p99.9 {late[2]:.1f} of {len(times)}", flush=True)


@contextmanager
def _spinning(count: int) -> Any:
    processes = [multiprocessing.Process(target=_spin, daemon=True) for _ in range(count)]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        for process in processes:
            process.terminate()


def _spin() -> None:
    while True:
        pass


def _times(call: Call, seconds: float) -> list[float]:
    """Milliseconds of each call."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (start := time.perf_counter()) < end:
        call()
        times.append((time.perf_counter() - start) * 1e3)
    return times


def _idle(arguments: argparse.Namespace) -> None:
    for key, side in _sides("images_10", 1, arguments).items():
        call = side(0)
        for _ in range(5):
            call()
            time.sleep(0.1)
        start = time.process_time()
        for _ in range(20):
            call()
            time.sleep(0.1)
        print(f"{key:24s} ms of CPU time a run: {(time.process_time() - start) / 20 * 1e3:.2f}", flush=True)


def _streams(arguments: argparse.Namespace) -> None:
    """As many streams of one thread as there are processors, beside one of one thread."""
    count = thread_count()
    for name in arguments.networks.split(","):
        feeds = feeds_of(NETWORKS[name]())
        one, many = _engine(name, threads=1), _engine(name, threads=count, streams=count)
        rates: dict[str, list[float]] = {"one": [], "many": []}
        for _ in range(arguments.rounds):
            rates["one"].append(_block([lambda one=one, feeds=feeds: one.run(feeds)], arguments.seconds).rate)
            calls: list[Call] = [lambda many=many, feeds=feeds: many.run(feeds)] * count
            rates["many"].append(_block(calls, arguments.seconds).rate)
        pairs = zip(rates["one"], rates["many"], strict=True)
        ratio = statistics.median(many / one for one, many in pairs)
        print(f"{name:16s} {count} streams {statistics.median(rates['many']):.0f}/s, {ratio:.2f} times one", flush=True)


def _callers(arguments: argparse.Namespace) -> None:
    for callers in arguments.callers:
        ratios: dict[str, list[float]] = {}
        for name in arguments.networks.split(","):
            sides = _sides(name, callers, arguments)
            ours, *others = _compare(f"{name:16s} {callers:2d} callers", sides, callers, arguments).items()
            for peer in sorted({key.partition(",")[0] for key, _ in others}):
                best = max((block for key, block in others if key.startswith(peer)), key=lambda block: block.rate)
                ratios.setdefault(f"{peer} throughput", []).append(ours[1].rate / best.rate)
                ratios.setdefault(f"{peer} p99", []).append(best.late / ours[1].late)
                ratios.setdefault(f"{peer} CPU time", []).append(best.work / ours[1].work)
        for key, values in ratios.items():
            better = f"better {sum(ratio >= 1 for ratio in values)} of {len(values)}"
            text = f"median {statistics.median(values):.2f}, least {min(values):.2f}, {better}"
            print(f"** {callers} callers, ratio to {key}: {text}", flush=True)


def _engines(arguments: argparse.Namespace) -> None:
    for name in [name for name in arguments.networks.split(",") if name in _FLOOR]:
        for count in arguments.engines:
            streams = min(count, thread_count())
            feeds = feeds_of(NETWORKS[name]())
            engines = [_engine(name, streams=streams) for _ in range(count)]
            sides: dict[str, Side] = {"mlirt": lambda k, engines=engines, feeds=feeds: lambda: engines[k].run(feeds)}
            if not arguments.alone:
                sessions = [cpu_session(NETWORKS[name](), threads=1) for _ in range(count)]
                sides["onnxruntime"] = lambda k, all_=sessions, feeds=feeds: lambda: all_[k].run(None, feeds)
            _compare(f"{name:16s} {count:2d} engines", sides, count, arguments)


def _sides(name: str, callers: int, arguments: argparse.Namespace) -> dict[str, Side]:
    """Ours first."""
    model, feeds, cores = NETWORKS[name](), feeds_of(NETWORKS[name]()), thread_count()
    engine = _engine(name, streams=min(callers, cores))
    sides: dict[str, Side] = {"mlirt": lambda _: lambda: engine.run(feeds)}
    if arguments.alone:
        return sides
    for threads in sorted({1, cores}):
        session = cpu_session(model, threads=threads)
        sides[f"onnxruntime, {threads} threads"] = lambda _, one=session: lambda: one.run(None, feeds)
    if find_spec("openvino"):
        sides["openvino"] = _openvino(model, feeds, "LATENCY" if callers == 1 else "THROUGHPUT")
    return sides


def _openvino(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray], hint: str) -> Side:
    core: Any = import_module("openvino").Core()
    read = core.read_model(model.SerializeToString())
    compiled: Any = core.compile_model(read, "CPU", {"PERFORMANCE_HINT": hint, "INFERENCE_PRECISION_HINT": "f32"})

    def side(_: int) -> Call:
        request = compiled.create_infer_request()
        return lambda: request.infer(feeds)

    return side


def _compare(title: str, sides: Mapping[str, Side], callers: int, arguments: argparse.Namespace) -> dict[str, Block]:
    """The median block of each side."""
    blocks: dict[str, list[Block]] = {key: [] for key in sides}
    for _ in range(arguments.rounds):
        for key, side in sides.items():
            time.sleep(_PAUSE)
            blocks[key].append(_block([side(number) for number in range(callers)], arguments.seconds))
    found = {
        key: Block(*(statistics.median(values) for values in zip(*all_, strict=True))) for key, all_ in blocks.items()
    }
    texts = [f"{key} {one.rate:.0f}/s p99 {one.late:.3f} ms CPU {one.work:.1f} us" for key, one in found.items()]
    print(f"{title}: " + ", ".join(texts), flush=True)
    return found


def _block(calls: Sequence[Call], seconds: float) -> Block:
    times: list[list[float]] = [[] for _ in calls]
    ready = threading.Barrier(len(calls) + 1)

    def call(number: int) -> None:
        calls[number]()
        ready.wait()
        times[number] = _times(calls[number], seconds)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(len(calls))]
    for thread in threads:
        thread.start()
    ready.wait()
    start, worked = time.perf_counter(), time.process_time()
    for thread in threads:
        thread.join()
    every = [one for some in times for one in some]
    work = (time.process_time() - worked) / len(every) * 1e6
    return Block(len(every) / (time.perf_counter() - start), float(np.percentile(every, 99)), work)
