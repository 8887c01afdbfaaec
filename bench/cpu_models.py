"""Networks on the CPU against onnxruntime, each side in a process of its own while the other one rests.

`python bench/cpu_models.py CORPUS [--only ID,..] [--runs N] [--rounds N]`. CORPUS holds <id>/model.onnx and perhaps
<id>/inputs.npz, else inputs are random; both sides get the same ones and the same number of threads (all cores, or
MLIRT_NUM_THREADS). The sides take turns in blocks of runs: first ours, then theirs, with a pause before each block,
because onnxruntime's idle threads spin for tens of milliseconds after a run. A ratio above 1 means that we are faster:
it is the median of the rounds' ratios of block medians; beside it stand the smallest and the largest.
"""

# onnxruntime has no types: what comes from it is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from cpu_peer import cpu_session
from gpu_cases import Arrays, Case, worst_error

from mlirt.runtime.host_cpu import thread_count

_REST_SECONDS = 0.2
_WARM_UP = 2
_MIN_SECONDS = 0.1
_SIDES = ("mlirt", "onnxruntime")


def prepare(side: str, path: str, feeds: Arrays) -> Callable[[], Arrays]:
    """The network ready to run on one side."""
    if side == "mlirt":
        import mlirt

        engine = mlirt.compile(path, target="cpu")
        return lambda: dict(engine.run(feeds))
    session = cpu_session(path, threads=thread_count())
    names = [value.name for value in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, feeds), strict=True))


def serve(side: str, path: str, pipe: Connection) -> None:
    """A side's process: sends its outputs, then the times of as many runs as it is asked for, until that is 0."""
    feeds = Case(Path(path).parent.name, 1, "fp32", Path(path)).feeds()
    try:
        run = prepare(side, path, feeds)
        pipe.send(run())
    except Exception as error:
        pipe.send(f"{side}: {type(error).__name__}: {error}")
        return
    while runs := int(pipe.recv()):
        for _ in range(_WARM_UP):
            run()
        pipe.send(timed(run, runs))


def timed(run: Callable[[], object], runs: int) -> list[float]:
    """The seconds of so many runs, or of more where they are short."""
    times: list[float] = []
    while len(times) < runs or sum(times) < _MIN_SECONDS:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return times


@dataclass(frozen=True)
class Result:
    """Medians in milliseconds, the ratio of each round, and the largest relative difference of the outputs."""

    ours: float
    theirs: float
    ratios: list[float]
    error: float


def measure(path: Path, runs: int, rounds: int) -> Result:
    """Both sides of one network; raises `RuntimeError` where one of them does not take it."""
    context = multiprocessing.get_context("spawn")
    pipes: list[Connection] = []
    for side in _SIDES:
        here, there = context.Pipe()
        context.Process(target=serve, args=(side, str(path), there), daemon=True).start()
        pipes.append(here)
    try:
        outputs = [pipe.recv() for pipe in pipes]
        failed = [text for text in outputs if isinstance(text, str)]
        if failed:
            raise RuntimeError("; ".join(failed))
        blocks = [[_block(pipe, runs) for pipe in pipes] for _ in range(rounds)]
    finally:
        for pipe in pipes:
            _dismiss(pipe)
    medians = [[statistics.median(block) for block in pair] for pair in blocks]
    ours, theirs = (statistics.median(pair[side] for pair in medians) * 1e3 for side in range(2))
    ratios = sorted(their / our for our, their in medians)
    return Result(ours, theirs, ratios, worst_error(outputs[0], outputs[1]))


def _block(pipe: Connection, runs: int) -> list[float]:
    time.sleep(_REST_SECONDS)
    pipe.send(runs)
    return pipe.recv()


def _dismiss(pipe: Connection) -> None:
    try:
        pipe.send(0)
    except OSError:
        pass  # the process has ended, after an error for example
    pipe.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--only", default="", help="networks, separated by commas")
    parser.add_argument("--runs", type=int, default=15, help="runs in a block")
    parser.add_argument("--rounds", type=int, default=5, help="blocks of each side")
    options = parser.parse_args()
    names = (
        options.only.split(",") if options.only else sorted(p.parent.name for p in options.corpus.glob("*/model.onnx"))
    )
    print(f"{thread_count()} threads, {options.rounds} rounds of {options.runs} runs", flush=True)
    print(f"{'network':28s} {'ours ms':>9s} {'theirs ms':>9s} {'ratio':>6s} {'range':>11s} {'error':>8s}", flush=True)
    ratios: list[float] = []
    for name in names:
        try:
            found = measure(options.corpus / name / "model.onnx", options.runs, options.rounds)
        except RuntimeError as error:
            print(f"{name:28s} {str(error)[:160]}", flush=True)
            continue
        ratio = statistics.median(found.ratios)
        ratios.append(ratio)
        spread = f"{found.ratios[0]:.2f}-{found.ratios[-1]:.2f}"
        line = f"{name:28s} {found.ours:9.2f} {found.theirs:9.2f} {ratio:6.2f} {spread:>11s} {found.error:8.1e}"
        print(line, flush=True)
    if ratios:
        print(f"median ratio {statistics.median(ratios):.2f} of {len(ratios)} networks")


if __name__ == "__main__":
    main()
