"""Networks on the CPU against their peers, each side in a process of its own while the other ones rest.

`python bench/cpu_models.py CORPUS [--only ID,..] [--runs N] [--rounds N] [--peers onnxruntime,openvino] [--json FILE]`.
CORPUS holds <id>/model.onnx and perhaps <id>/inputs.npz, else inputs are random; all sides get the same ones and the
same number of threads (all cores, or MLIRT_NUM_THREADS). The sides take turns in blocks of runs: first ours, then
theirs, with a pause before each block, because onnxruntime's idle threads spin for tens of milliseconds after a run. A
ratio above 1 means that we are faster than the fastest peer: it is the median of the rounds' ratios of block medians;
beside it stand the smallest and the largest. A peer that does not take a network is left out of its row.
"""

# The peers have no types: what comes from them is unknown to the checker.
# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path

import onnx
from cpu_peer import cpu_session
from gpu_cases import Arrays, Case, worst_error

from mlirt.runtime.host_cpu import thread_count

_REST_SECONDS = 0.2
_WARM_UP = 2
_MIN_SECONDS = 0.1
PEERS = ("onnxruntime", "openvino")


def prepare(side: str, path: str, feeds: Arrays) -> Callable[[], Arrays]:
    """The network ready to run on one side."""
    ways = {"mlirt": _prepare_ours, "onnxruntime": _prepare_onnxruntime, "openvino": _prepare_openvino}
    return ways[side](path, feeds)


def _prepare_ours(path: str, feeds: Arrays) -> Callable[[], Arrays]:
    import mlirt

    engine = mlirt.compile(path, target="cpu")
    return lambda: dict(engine.run(feeds))


def _prepare_onnxruntime(path: str, feeds: Arrays) -> Callable[[], Arrays]:
    session = cpu_session(path, threads=thread_count())
    names = [value.name for value in session.get_outputs()]
    return lambda: dict(zip(names, session.run(None, feeds), strict=True))


def _prepare_openvino(path: str, feeds: Arrays) -> Callable[[], Arrays]:
    """float32 throughout: where the processor has bfloat16, OpenVINO would compute in it."""
    openvino = import_module("openvino")
    hints = {"PERFORMANCE_HINT": "LATENCY", "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(path, "CPU", hints | {"INFERENCE_NUM_THREADS": thread_count()})
    request = compiled.create_infer_request()
    names = [value.name for value in onnx.load(path, load_external_data=False).graph.output]

    def run() -> Arrays:
        results = request.infer(feeds, share_inputs=True, share_outputs=True)
        return {name: results[index] for index, name in enumerate(names)}

    return run


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
    """Milliseconds of a run by side, the ratio of each round, and the largest relative difference of the outputs.

    `refused` says why peers are not in it.
    """

    milliseconds: dict[str, float]
    ratios: list[float]
    error: float
    refused: dict[str, str]


def measure(path: Path, runs: int, rounds: int, peers: Sequence[str] = PEERS[:1]) -> Result:
    """All sides of one network; raises `RuntimeError` where ours, or each of the peers, does not take it."""
    context = multiprocessing.get_context("spawn")
    pipes: dict[str, Connection] = {}
    for side in ("mlirt", *peers):
        here, there = context.Pipe()
        context.Process(target=serve, args=(side, str(path), there), daemon=True).start()
        pipes[side] = here
    try:
        outputs = {side: pipe.recv() for side, pipe in pipes.items()}
        refused = {side: text for side, text in outputs.items() if isinstance(text, str)}
        if "mlirt" in refused or len(refused) == len(peers):
            raise RuntimeError("; ".join(refused.values()))
        sides = [side for side in outputs if side not in refused]
        rows = [{side: statistics.median(_block(pipes[side], runs)) for side in sides} for _ in range(rounds)]
    finally:
        for pipe in pipes.values():
            _dismiss(pipe)
    medians = {side: statistics.median(row[side] for row in rows) * 1e3 for side in sides}
    ratios = sorted(min(time for side, time in row.items() if side != "mlirt") / row["mlirt"] for row in rows)
    return Result(medians, ratios, worst_error(outputs["mlirt"], outputs[sides[1]]), refused)


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
    parser.add_argument("--peers", default=PEERS[0], help=f"some of {','.join(PEERS)}")
    parser.add_argument("--json", type=Path, help="write the results to this file, after each network")
    options = parser.parse_args()
    peers = options.peers.split(",")
    if not set(peers) <= set(PEERS):
        parser.error(f"--peers {options.peers}: expected some of {','.join(PEERS)}")
    names = (
        options.only.split(",") if options.only else sorted(p.parent.name for p in options.corpus.glob("*/model.onnx"))
    )
    print(f"{thread_count()} threads, {options.rounds} rounds of {options.runs} runs", flush=True)
    heads = "".join(f" {f'{side} ms':>14s}" for side in ("mlirt", *peers))
    print(f"{'network':28s}{heads} {'ratio':>6s} {'range':>11s} {'error':>8s}", flush=True)
    results: dict[str, Result] = {}
    for name in names:
        try:
            found = measure(options.corpus / name / "model.onnx", options.runs, options.rounds, peers)
        except RuntimeError as error:
            print(f"{name:28s} {str(error)[:160]}", flush=True)
            continue
        results[name] = found
        times = "".join(f" {found.milliseconds.get(side, float('nan')):14.2f}" for side in ("mlirt", *peers))
        spread = f"{found.ratios[0]:.2f}-{found.ratios[-1]:.2f}"
        line = f"{name:28s}{times} {statistics.median(found.ratios):6.2f} {spread:>11s} {found.error:8.1e}"
        print(line, flush=True)
        if options.json:
            options.json.write_text(json.dumps({key: asdict(one) for key, one in results.items()}))
    if results:
        ratios = [statistics.median(found.ratios) for found in results.values()]
        middle, mean = statistics.median(ratios), statistics.geometric_mean(ratios)
        print(f"{len(ratios)} ratios: median {middle:.2f}, geometric mean {mean:.2f}, least {min(ratios):.2f}")


if __name__ == "__main__":
    main()
