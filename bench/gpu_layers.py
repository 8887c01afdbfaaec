"""Single products and convolutions on a GPU against PyTorch: through the compiler, each with its fastest tactic.

    python bench/gpu_layers.py [--only 512x3072x768,conv] [--libraries CUBLAS_LT,CUDNN] [--json FILE]

Products are those of inference and large ones, [rows, depth] times a known [depth, columns]; convolutions are those of
ResNet-50 at batch 1 and 32. Half precision where nothing else is said, inputs and weights in the cache where they fit.
Our time is that of ten calls in one plan, as tactics are measured while building; the peers' is that of ten calls in a
CUDA graph of PyTorch, of `mm`, and of `conv2d` on channels-last tensors with cuDNN's benchmark on. Prints the ratio:
above 1 we are faster; and beside it the ratio that a kernel reached that was written by hand. With `--libraries` their
tactics are measured in the same way, and stand in a column of their own.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

from gpu_layer_cases import LAYERS, Layer  # noqa: E402
from gpu_timing import Stopwatch  # noqa: E402

from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.tactics.device_timer import Timer  # noqa: E402
from mlirt.builder.tactics.measurement import times_of  # noqa: E402
from mlirt.builder.tactics.selection import CALLS  # noqa: E402
from mlirt.builder.tactics.sites import Site, find_sites  # noqa: E402
from mlirt.builder.tactics.tactic_sources import features_of_sources  # noqa: E402
from mlirt.builder.tactics.timing_cache import TimingCache, times_of_those_right  # noqa: E402
from mlirt.builder.tactics.tuning import device_timer  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp  # noqa: E402
from mlirt.frontend.onnx.importer import import_model  # noqa: E402
from mlirt.passes.pipeline import PipelineOptions, run_phases  # noqa: E402

_TOGETHER = 12  # layers whose kernels are compiled before the first of them is measured
_CLOSE = 0.95  # of the prototype's ratio

Row = dict[str, Any]


def our_times(layers: Sequence[Layer], timer: Timer, libraries: frozenset[str]) -> list[dict[str, float]]:
    """The microseconds of each layer by tactic; the layers have the same precision."""
    precision = layers[0].precision
    context, target, sites = RtContext(), cuda_target(precision, libraries), list[Site]()
    for layer in layers:
        module = import_model(layer.model(), context, {}, None)
        run_phases(module, context, last="layout", options=PipelineOptions("cuda", precision))
        found = [one for one in find_sites(module, context, target) if isinstance(one.ops[0], MatmulOp | ConvolutionOp)]
        sites.append(max(found, key=lambda site: len(site.ops)))
    return times_of(sites, context, target, {}, timer, TimingCache(), _silent, CALLS, cold=False)


def peer_time(layer: Layer) -> float:
    """The microseconds of a layer in PyTorch."""
    import torch

    stream = torch.cuda.Stream()
    watch = Stopwatch(stream.cuda_stream)
    with torch.cuda.stream(stream):
        call, graph = layer.peer(), torch.cuda.CUDAGraph()
        call()
        stream.synchronize()
        with torch.cuda.graph(graph, stream=stream):
            for _ in range(CALLS):
                call()
        return 1e3 * watch.in_turns({"graph": graph.replay}, 7)["graph"] / CALLS


def measured(layers: Sequence[Layer], timer: Timer, libraries: frozenset[str]) -> Iterator[Row]:
    """A row for each layer; what libraries take stands apart."""
    for _, alike in groupby(layers, lambda layer: layer.precision):
        rest = list(alike)
        while rest:
            now, rest = rest[:_TOGETHER], rest[_TOGETHER:]
            for layer, times in zip(now, our_times(now, timer, libraries), strict=True):
                right = times_of_those_right(times)
                theirs = {name: time for name, time in right.items() if any(one in name for one in libraries)}
                own = {name: time for name, time in right.items() if name not in theirs}
                yield {"layer": layer, "times": own, "libraries": theirs, "peer": peer_time(layer)}


def line(row: Row) -> str:
    """Of the table."""
    layer: Layer = row["layer"]
    tactic, ours = min(row["times"].items(), key=lambda item: item[1])
    ratio, rate = row["peer"] / ours, layer.operations / ours / 1e6
    library = f"{min(row['libraries'].values()):.2f}" if row["libraries"] else ""
    by_hand = "" if layer.prototype is None else f"{layer.prototype:.2f} | {ratio / layer.prototype:.2f}"
    return (
        f"| {layer.name} | {tactic} | {ours:.2f} | {rate:.0f} | {row['peer']:.2f} | {ratio:.2f} | "
        f"{library} | {by_hand or ' | '} |"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of layers, or what they start with")
    parser.add_argument("--libraries", default="", help="tactic sources, such as CUBLAS_LT,CUDNN")
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()
    wanted = tuple(name for name in options.only.split(",") if name)
    layers = [layer for layer in LAYERS if not wanted or layer.name.startswith(wanted)]
    timer = device_timer()
    if timer is None:
        raise SystemExit("this machine has no CUDA device")
    columns = "layer | tactic | us | TOP/s | PyTorch us | ratio | libraries us | by hand | ours / by hand"
    print(f"| {columns} |\n{'|---' * 9}|")
    libraries = features_of_sources(name for name in options.libraries.split(",") if name)
    rows: list[Row] = []
    for row in measured(layers, timer, libraries):
        rows.append(row)
        print(line(row), flush=True)
        if options.json:
            plain = [{**one, "layer": one["layer"].name} for one in rows]
            Path(options.json).write_text(json.dumps(plain, indent=1) + "\n", encoding="utf-8")
    known = [row for row in rows if row["layer"].prototype is not None]
    close = [row for row in known if row["peer"] / min(row["times"].values()) >= _CLOSE * row["layer"].prototype]
    print(f"{len(close)} of {len(known)} layers are not slower than by hand by more than 5 %")


def _silent(text: str, done: int, total: int) -> None:
    """Nobody watches."""


if __name__ == "__main__":
    main()
