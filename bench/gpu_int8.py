"""A network in int8 on a GPU, against the same network in half precision by this compiler and by PyTorch.

    python bench/gpu_int8.py [--network resnet50] [--batches 32] [--heuristic] [--layers 12] [--folder DIR]

onnxruntime's static quantiser puts QuantizeLinear and DequantizeLinear around the layers: int8 without zero
points between them, weights with a scale for each output channel. All contestants run in turns on one stream. Prints
for each batch size the milliseconds and their ratios, how far our bytes are from onnxruntime's on the CPU, which runs
the quantised network, and the layers that take the most time in int8 beside their time in half precision.
"""

# PyTorch and onnxruntime have no types here: what comes from them is unknown to the checker.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, cast

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from cpu_peer import cpu_session  # noqa: E402
from gpu_cases import Array, Arrays, Case, worst_error  # noqa: E402
from gpu_engine import ResidentPlan  # noqa: E402
from gpu_peers import TorchPeers  # noqa: E402
from gpu_timing import Stopwatch  # noqa: E402
from kernel_trace import kernel_times  # noqa: E402
from networks import NETWORKS, inputs  # noqa: E402
from quantized_model import folded  # noqa: E402

_ROUNDS, _REPEATS = 15, 10


class Reader:
    """The samples for the quantiser: one batch."""

    def __init__(self, feeds: Arrays) -> None:
        self._left = [feeds]

    def get_next(self) -> Arrays | None:
        return self._left.pop() if self._left else None


def quantised(network: str, batch: int, folder: Path) -> Path:
    """The network with bytes between its layers."""
    path = folder / f"{network}.b{batch}.int8.onnx"
    if path.exists():
        return path
    quantization: Any = import_module("onnxruntime.quantization")
    source = folder / f"{network}.b{batch}.onnx"
    onnx.save(NETWORKS[network](batch), source)
    with tempfile.TemporaryDirectory() as scratch:
        onnx.save(folded(source, Path(scratch)), source)
    byte = quantization.QuantType.QInt8
    symmetric = {"ActivationSymmetric": True, "WeightSymmetric": True}
    reader, form = Reader(inputs(network, batch)), quantization.QuantFormat.QDQ
    quantization.quantize_static(
        str(source), str(path), reader, form, per_channel=True, activation_type=byte, weight_type=byte,
        extra_options=symmetric,
    )  # fmt: skip
    return path


def build(network: str, batch: int, precision: str, folder: Path, heuristic: bool) -> str:
    """Write the plan of a network; says how long it took."""
    import mlirt

    start = time.perf_counter()
    model = onnx.load(quantised(network, batch, folder)) if "int8" in precision else NETWORKS[network](batch)
    shapes = {name: list(array.shape) for name, array in inputs(network, batch).items()}
    engine = mlirt.compile(model, "cuda", precision, input_shapes=shapes, heuristic=heuristic)
    engine.save(plan_path(network, batch, precision, folder))
    return f"{network} at batch {batch} in {precision}: built in {time.perf_counter() - start:.0f} s"


def plan_path(network: str, batch: int, precision: str, folder: Path) -> Path:
    return folder / f"{network}.b{batch}.{precision}.plan"


def main() -> None:
    options = _arguments()
    with tempfile.TemporaryDirectory(prefix="mlirt-int8-") as scratch:
        folder = Path(options.folder or scratch)
        folder.mkdir(parents=True, exist_ok=True)
        _build_all(options, folder)
        for batch in map(int, options.batches.split(",")):
            measure(options.network, batch, folder, options.layers)


def _build_all(options: argparse.Namespace, folder: Path) -> None:
    """Both precisions side by side: their kernels are compiled on different cores, and measured in turns."""
    os.environ.setdefault("MLIRT_JOBS", str(max(1, (os.cpu_count() or 1) // 2)))
    batches = list(map(int, options.batches.split(",")))
    for batch in batches:
        quantised(options.network, batch, folder)
    with ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:
        running = [
            pool.submit(build, options.network, batch, precision, folder, options.heuristic)
            for batch in batches
            for precision in ("int8+fp16", "fp16")
        ]
        for one in running:
            print(one.result(), flush=True)


def measure(network: str, batch: int, folder: Path, layers: int) -> None:
    """Times in turns, agreement, and layers."""
    import torch

    feeds = inputs(network, batch)
    stream = torch.cuda.Stream()
    watch = Stopwatch(stream.cuda_stream)
    plans = {
        name: ResidentPlan(plan_path(network, batch, precision, folder), feeds, stream.cuda_stream)
        for name, precision in (("int8", "int8+fp16"), ("fp16", "fp16"))
    }
    plans["int8"]()
    session = cpu_session(quantised(network, batch, folder))
    given = cast("list[Array]", session.run(None, feeds))
    want: Arrays = dict(zip([one.name for one in session.get_outputs()], given, strict=True))
    got = plans["int8"].outputs()
    same = statistics.mean(float(np.mean(got[name].argmax(-1) == array.argmax(-1))) for name, array in want.items())
    contestants: dict[str, Callable[[], object]] = dict(plans)
    peers = TorchPeers(Case(network, batch, "fp16"), feeds, stream)
    made = [peers.make(recipe) for recipe in peers.recipes()]
    times = watch.in_turns(contestants | {f"PyTorch {peer.name}": peer.call for peer in made}, _ROUNDS)
    ours = times["int8"]
    print(f"\n{network} at batch {batch}, {torch.cuda.get_device_name()}")
    for name, ms in times.items():
        print(f"  {name:20s} {ms:8.4f} ms   {ms / ours:5.2f} times as long as int8")
    print(f"  against onnxruntime's int8: error {worst_error(got, want):.1e}, the same class {100 * same:.1f} %")
    _print_layers(plans, watch.wait, layers)


def _print_layers(plans: Mapping[str, ResidentPlan], wait: Callable[[], None], count: int) -> None:
    found = {name: _layers(plan, wait) for name, plan in plans.items()}
    for name, rows in found.items():
        print(f"  {name}: {sum(us for _, us in rows):.1f} us in {len(rows)} launches")
    for name, rows in found.items():
        print(f"  the longest launches in {name}:")
        for layer, microseconds in sorted(rows, key=lambda row: -row[1])[:count]:
            print(f"    {microseconds:7.1f} us  {layer[:90]}")


def _layers(plan: ResidentPlan, wait: Callable[[], None]) -> Sequence[tuple[str, float]]:
    """The layers of the launches with their microseconds."""
    launches = plan.manifest.launches
    times = kernel_times(plan, wait, len(launches), _REPEATS) or plan.launch_times()
    return [(launch.layer, us) for launch, us in zip(launches, times, strict=True)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--network", default="resnet50", choices=sorted(NETWORKS))
    parser.add_argument("--batches", default="32")
    parser.add_argument("--heuristic", action="store_true", help="choose tactics by estimates, without measuring")
    parser.add_argument("--layers", type=int, default=12, help="longest launches that are printed")
    parser.add_argument("--folder", default="", metavar="DIR", help="keep models and plans here")
    return parser.parse_args()


if __name__ == "__main__":
    main()
