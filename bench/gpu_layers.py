"""Single products and convolutions on a GPU against PyTorch: through the compiler, each with its fastest tactic.

    python bench/gpu_layers.py [--only 512x3072x768,conv] [--json FILE]

Products are those of inference and large ones, [rows, depth] times a known [depth, columns]; convolutions are those of
ResNet-50 at batch 1 and 32. Half precision, inputs and weights in the cache where they fit. Our time is that of ten
calls in one plan, as tactics are measured while building; the peers' is that of ten calls in a CUDA graph of PyTorch,
of `mm`, and of `conv2d` on channels-last tensors with cuDNN's benchmark on. Prints the ratio: above 1 we are faster.
"""

# PyTorch is not among the packages that are checked here: what comes from it has no type.
# pyright: reportMissingImports=false, reportMissingTypeStubs=false, reportUnknownMemberType=false
# pyright: reportUnknownVariableType=false, reportUnknownArgumentType=false, reportUnknownLambdaType=false

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "src")]

import numpy as np  # noqa: E402
import onnx  # noqa: E402
from gpu_timing import Stopwatch  # noqa: E402
from graph_writer import GraphWriter, floats  # noqa: E402

from mlirt.builder.host import cuda_target  # noqa: E402
from mlirt.builder.tactics.measurement import times_of  # noqa: E402
from mlirt.builder.tactics.selection import CALLS  # noqa: E402
from mlirt.builder.tactics.sites import Site, find_sites  # noqa: E402
from mlirt.builder.tactics.timing_cache import TimingCache  # noqa: E402
from mlirt.builder.tactics.tuning import device_timer  # noqa: E402
from mlirt.dialects.context import RtContext  # noqa: E402
from mlirt.dialects.fused.contraction import ConvolutionOp, MatmulOp  # noqa: E402
from mlirt.frontend.onnx.importer import import_model  # noqa: E402
from mlirt.passes.pipeline import PipelineOptions, run_phases  # noqa: E402

_PRODUCTS = (
    *((4096, 4096, 4096), (2048, 2048, 2048), (128, 768, 768), (128, 3072, 768), (128, 768, 3072), (512, 768, 768)),
    *((512, 3072, 768), (512, 768, 3072), (4096, 3072, 768), (4096, 768, 3072), (3136, 256, 64), (3136, 64, 256)),
    *((784, 512, 128), (196, 1024, 256), (49, 512, 2048), (12544, 512, 128), (12544, 128, 512)),
)
# (channels, pixels of a row) of ResNet-50's 3 x 3 convolutions, each at these batch sizes.
_CHAIN = 4  # convolutions after one another: a single one might not be worth the memory order that suits them
_CONVOLUTIONS, _BATCHES = ((64, 56), (128, 28), (256, 14), (512, 7)), (1, 32)


@dataclass(frozen=True)
class Layer:
    """A layer by its name: the ONNX network of it alone, what PyTorch is to do, and its operations."""

    name: str
    model: Callable[[], onnx.ModelProto]
    peer: Callable[[], Callable[[], object]]
    operations: float


def product(rows: int, columns: int, depth: int) -> Layer:
    """A product with known right factor."""

    def model() -> onnx.ModelProto:
        write = GraphWriter(0)
        weights = np.random.default_rng(0).standard_normal((depth, columns), np.float32) * np.float32(0.02)
        write.node("MatMul", ["x", write.constant("w", weights.astype(np.float16))], "y")
        return write.model("product", [_halves("x", rows, depth)], [_halves("y", rows, columns)])

    def peer() -> Callable[[], object]:
        import torch

        shapes = (rows, depth), (columns, depth)
        left, right = (torch.randn(shape, device="cuda", dtype=torch.half) for shape in shapes)
        return lambda: torch.mm(left, right.T)

    return Layer(f"{rows}x{columns}x{depth}", model, peer, 2.0 * rows * columns * depth)


def _halves(name: str, *shape: int) -> onnx.ValueInfoProto:
    return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT16, shape)


def convolution(channels: int, size: int, batch: int) -> Layer:
    """A 3 x 3 convolution that keeps the size."""
    shape, window = (batch, channels, size, size), (channels, channels, 3, 3)

    def model() -> onnx.ModelProto:
        write, x = GraphWriter(0), "x"
        for number in range(_CHAIN):
            name = "y" if number == _CHAIN - 1 else f"x{number}"
            x = write.node("Conv", [x, write.normal(f"w{number}", window, 0.02)], name, pads=[1, 1, 1, 1])
        return write.model("convolution", [floats("x", *shape)], [floats("y", *shape)])

    def peer() -> Callable[[], object]:
        import torch

        torch.backends.cudnn.benchmark = True
        image, kernel = (
            torch.randn(one, device="cuda", dtype=torch.half).to(memory_format=torch.channels_last)
            for one in (shape, window)
        )
        return lambda: torch.nn.functional.conv2d(image, kernel, None, 1, 1)

    return Layer(f"conv {channels}ch {size}x{size} b{batch}", model, peer, 2.0 * np.prod(shape) * channels * 9)


def our_times(layers: Sequence[Layer]) -> list[dict[str, float]]:
    """The microseconds of each layer by tactic."""
    timer, context, target, sites = device_timer(), RtContext(), cuda_target(), list[Site]()
    if timer is None:
        raise SystemExit("this machine has no CUDA device")
    for layer in layers:
        module = import_model(layer.model(), context, {}, None)
        run_phases(module, context, last="layout", options=PipelineOptions("cuda", "fp16"))
        found = [one for one in find_sites(module, context, target) if isinstance(one.ops[0], MatmulOp | ConvolutionOp)]
        sites.append(max(found, key=lambda site: len(site.ops)))
    return times_of(sites, context, target, {}, timer, TimingCache(), _silent, CALLS, cold=False)


def peer_times(layers: Sequence[Layer]) -> list[float]:
    """The microseconds of each layer in PyTorch."""
    import torch

    stream = torch.cuda.Stream()
    watch = Stopwatch(stream.cuda_stream)
    found: list[float] = []
    for layer in layers:
        with torch.cuda.stream(stream):
            call, graph = layer.peer(), torch.cuda.CUDAGraph()
            call()
            stream.synchronize()
            with torch.cuda.graph(graph, stream=stream):
                for _ in range(CALLS):
                    call()
            found.append(1e3 * watch.in_turns({"graph": graph.replay}, 7)["graph"] / CALLS)
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="names of layers, or what they start with")
    parser.add_argument("--json", default="", metavar="FILE")
    options = parser.parse_args()
    layers = [product(*sizes) for sizes in _PRODUCTS]
    layers += [convolution(*sizes, batch) for batch in _BATCHES for sizes in _CONVOLUTIONS]
    wanted = tuple(name for name in options.only.split(",") if name)
    layers = [layer for layer in layers if not wanted or layer.name.startswith(wanted)]
    rows: list[dict[str, Any]] = []
    print("| layer | tactic | us | TFLOP/s | PyTorch us | ratio |\n|---|---|---|---|---|---|")
    for layer, times, peer in zip(layers, our_times(layers), peer_times(layers), strict=True):
        tactic, ours = min(times.items(), key=lambda item: item[1])
        rate = layer.operations / ours / 1e6
        print(f"| {layer.name} | {tactic} | {ours:.2f} | {rate:.0f} | {peer:.2f} | {peer / ours:.2f} |", flush=True)
        rows.append({"layer": layer.name, "times": times, "peer": peer})
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


def _silent(text: str, done: int, total: int) -> None:
    """Nobody watches."""


if __name__ == "__main__":
    main()
