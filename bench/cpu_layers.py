"""Single layers on the CPU against onnxruntime: one-node models with plain tensors, in short turns in one process.

`python bench/cpu_layers.py [NAME ..] [--rounds N] [--below RATIO]`. A NAME is part of a layer's name; without one
all of `cpu_layer_cases.py` are measured. Both sides get the same inputs and the same number of threads (all cores, or
MLIRT_NUM_THREADS). A ratio above 1 means that we are faster; `best` is that of the quickest runs, `median` that of the
rounds, and between two turns is a pause, because idle threads of either side spin for a while.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from cpu_layer_cases import LAYERS, Layer
from cpu_models import Result, prepare
from gpu_cases import worst_error

from mlirt.errors import MlirtError
from mlirt.runtime.host_cpu import thread_count

_TURN_SECONDS, _REST_SECONDS = 0.01, 0.06


def turn(run: Callable[[], object]) -> float:
    """Seconds of the quickest of a few runs, after a rest and one run that counts nothing."""
    time.sleep(_REST_SECONDS)
    run()
    times: list[float] = []
    end = time.perf_counter() + _TURN_SECONDS
    while len(times) < 2 or time.perf_counter() < end:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(layer: Layer, rounds: int) -> Result:
    """Milliseconds of the quickest runs, and the ratio of each round."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        path.write_bytes(layer.model().SerializeToString())
        ours, theirs = (prepare(side, str(path), layer.feeds()) for side in ("mlirt", "onnxruntime"))
    error = worst_error(ours(), theirs())
    turns = [(turn(ours), turn(theirs)) for _ in range(rounds)]
    own, peer = (min(pair[side] for pair in turns) * 1e3 for side in range(2))
    ratios = sorted(their / our for our, their in turns)
    return Result({"mlirt": own, "onnxruntime": peer}, ratios, error, refused={})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0] if __doc__ else None)
    parser.add_argument("names", nargs="*", help="parts of names of layers")
    parser.add_argument("--rounds", type=int, default=12, help="turns of each side")
    parser.add_argument("--below", type=float, default=0.0, help="at the end, list the layers with a lower best ratio")
    options = parser.parse_args()
    print(f"{thread_count()} threads, {options.rounds} rounds", flush=True)
    print(f"{'layer':38s} {'ours us':>9s} {'theirs us':>9s} {'best':>5s} {'median':>6s} {'error':>8s}", flush=True)
    bests: dict[str, float] = {}
    for layer in LAYERS:
        if options.names and not any(name in layer.name for name in options.names):
            continue
        try:
            found = measure(layer, options.rounds)
        except MlirtError as error:
            print(f"{layer.name:38s} {str(error)[:120]}", flush=True)
            continue
        own, peer = found.milliseconds["mlirt"], found.milliseconds["onnxruntime"]
        bests[layer.name] = best = peer / own
        numbers = f"{own * 1e3:9.1f} {peer * 1e3:9.1f} {best:5.2f} {statistics.median(found.ratios):6.2f}"
        print(f"{layer.name:38s} {numbers} {found.error:8.1e}", flush=True)
    slow = sorted((best, name) for name, best in bests.items() if best < options.below)
    for best, name in slow:
        print(f"below {options.below}: {name} {best:.2f}")


if __name__ == "__main__":
    main()
