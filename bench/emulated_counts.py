"""Instructions that kernels take on a processor, counted by the emulator, against what their products need at least.

`python bench/emulated_counts.py [--emulators FOLDER] [--cpu NAME,..] [--only TEXT] [--precision fp32]`

A plugin of QEMU (bench/emulated_counts.c, which the machine's C compiler makes) counts how often each block of
instructions runs. Of each layer the table has:

needed      the instructions that multiply and add: the products over those of one instruction (FMLA, SDOT, USDOT; for
            int8 on x86-64-v3 two instructions for four bytes in each lane, on Arm without SDOT one for four products)
taken       all instructions of the layer's kernels: with loads, loops, the epilogue and the layouts of its borders
ratio       taken / needed

Convolutions that Winograd's transformation makes cheaper take fewer than direct ones need. Layers whose weights are
halves are built with the precision fp16, or with the one that is named.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from emulated import FOLDER, emulated_command, emulated_environment, why_not
from emulated_messages import write_message
from onnx import TensorProto, helper, numpy_helper

from mlirt.dialects.processor_files import Processor, read_processor

Array = np.ndarray[Any, np.dtype[Any]]
_HERE = Path(__file__).parent
_CPUS = "neoverse-v1,neoverse-n1,cortex-a57,x86-64-v3"


@dataclass(frozen=True)
class Layer:
    """A network of one layer, what it is given, and its products of two numbers."""

    name: str
    model: onnx.ModelProto
    feeds: dict[str, Array]
    products: int
    is_int8: bool
    is_half: bool = False


def _quantized(x: str, name: str, weights: list[onnx.TensorProto], nodes: list[onnx.NodeProto]) -> str:
    """The input in int8: what the layer is given is uint8 already."""
    weights += [
        numpy_helper.from_array(np.array(0.02, np.float32), f"{name}_scale"),
        numpy_helper.from_array(np.array(128, np.uint8), f"{name}_zero"),
    ]
    nodes.append(helper.make_node("DequantizeLinear", [x, f"{name}_scale", f"{name}_zero"], [name], name))
    return name


def _layer(name: str, kind: str, shape: tuple[int, ...], weight: tuple[int, ...], is_int8: bool, **more: Any) -> Layer:
    random = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    x, w = "x", "w"
    feeds: dict[str, Array] = {"x": random.normal(size=shape).astype(np.float32)}
    if is_int8:
        feeds = {"x": random.integers(0, 256, shape, np.uint8)}
        weights.append(numpy_helper.from_array(random.integers(-127, 128, weight, np.int8), "codes"))
        weights.append(numpy_helper.from_array(np.array(0.01, np.float32), "w_scale"))
        nodes.append(helper.make_node("DequantizeLinear", ["codes", "w_scale"], ["w"], "w"))
        x = _quantized("x", "x_number", weights, nodes)
    else:
        weights.append(numpy_helper.from_array(random.normal(size=weight).astype(np.float32), "w"))
    nodes.append(helper.make_node(kind, [x, w], ["c" if is_int8 else "y"], "layer", **more))
    if is_int8:
        weights.append(numpy_helper.from_array(np.array(2.0, np.float32), "y_scale"))
        weights.append(numpy_helper.from_array(np.array(128, np.uint8), "y_zero"))
        nodes.append(helper.make_node("QuantizeLinear", ["c", "y_scale", "y_zero"], ["y"], "y"))
    element = TensorProto.UINT8 if is_int8 else TensorProto.FLOAT
    ends = [helper.make_tensor_value_info("x", element, shape)]
    graph = helper.make_graph(nodes, "layer", ends, [onnx.ValueInfoProto(name="y")], weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    places = int(np.prod(shape[2:])) * shape[0] if kind == "Conv" else int(np.prod(shape[:-1]))
    each = int(np.prod(weight))
    return Layer(name, model, feeds, places * each, is_int8)


def _half_product(name: str, rows: int, depth: int, columns: int) -> Layer:
    """A product by weights in half precision; what is given and what comes is float32."""
    random = np.random.default_rng(0)
    weights = (random.normal(size=(depth, columns)) / np.sqrt(depth)).astype(np.float16)
    nodes = [
        helper.make_node("Cast", ["codes"], ["w"], "w", to=TensorProto.FLOAT),
        helper.make_node("MatMul", ["x", "w"], ["y"], "layer"),
    ]
    ends = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (rows, depth))]
    stored = [numpy_helper.from_array(weights, "codes")]
    graph = helper.make_graph(nodes, "layer", ends, [onnx.ValueInfoProto(name="y")], stored)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    feeds = {"x": random.normal(size=(rows, depth)).astype(np.float32)}
    return Layer(name, model, feeds, rows * depth * columns, is_int8=False, is_half=True)


def layers() -> Iterator[Layer]:
    """Convolutions and products as they are in networks, each in float32 and in int8; products by halves."""
    yield _half_product("half product of 16 rows", 16, 512, 1024)
    yield _half_product("half product of one row", 1, 512, 1024)
    for is_int8 in (False, True):
        kind = "int8" if is_int8 else "fp32"
        pads = {"pads": [1, 1, 1, 1]}
        yield _layer(f"{kind} convolution 1x1", "Conv", (1, 128, 28, 28), (128, 128, 1, 1), is_int8)
        yield _layer(f"{kind} convolution 3x3, 32 channels", "Conv", (1, 32, 28, 28), (64, 32, 3, 3), is_int8, **pads)
        yield _layer(f"{kind} convolution 5x5", "Conv", (1, 32, 14, 14), (64, 32, 5, 5), is_int8, pads=[2, 2, 2, 2])
        yield _layer(f"{kind} product", "MatMul", (196, 256), (256, 512), is_int8)
        yield _layer(f"{kind} product of odd lengths", "MatMul", (67, 129), (129, 143), is_int8)


def needed(layer: Layer, cpu: Processor) -> int:
    """The instructions that multiply and add."""
    lanes = cpu.vector_bits // 32
    each = lanes
    if layer.is_int8:
        by_fours = {"dotprod", "i8mm", "avxvnni", "avx512vnni"} & {*cpu.special}
        on_arm = cpu.architecture == "aarch64"
        each = 4 * lanes if by_fours else lanes if on_arm else 2 * lanes
    return -(-layer.products // each)


def counted(
    layer: Layer, cpu: str, folder: Path, plugin: Path, scratch: Path, half_precision: str = "fp16"
) -> dict[str, int]:
    """How many instructions each kernel of a layer took."""
    import mlirt

    precision = half_precision if layer.is_half else "fp32"
    engine: Any = mlirt.compile(layer.model, target="cpu", cpu=cpu, precision=precision)
    plan, inputs, places, counts = (scratch / name for name in ("a.plan", "a.inputs", "places.json", "counts"))
    plan.write_bytes(engine.plan.to_bytes())
    with inputs.open("wb") as stream:
        write_message(stream, {}, layer.feeds)
    command = emulated_command(folder, cpu, ("-plugin", f"{plugin},out={counts}"), static=False)
    together = ["--together"] * (read_processor(cpu).architecture == "x86_64")
    environment = {**emulated_environment(folder, cpu), "MLIRT_NUM_THREADS": "1"}
    command += [str(_HERE / "emulated_counted.py"), str(plan), str(inputs), str(places), *together]
    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
    ranges: dict[str, tuple[int, int]] = json.loads(places.read_text(encoding="utf-8"))
    blocks = [[int(word) for word in line.split()] for line in counts.read_text(encoding="utf-8").splitlines()]
    return {
        name: sum(count * many for at, many, count in blocks if start <= at < start + size)
        for name, (start, size) in ranges.items()
        if not name.startswith("mlirt_")
    }


def compiled_plugin(scratch: Path) -> Path:
    """The plugin as a library."""
    plugin = scratch / "counts.so"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", str(plugin), str(_HERE / "emulated_counts.c")], check=True)
    return plugin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--emulators", type=Path, default=FOLDER, help="the folder of bench/emulated.py")
    parser.add_argument("--cpu", default=_CPUS, help="processors (default: %(default)s)")
    parser.add_argument("--only", default="", help="only layers with this text in their names")
    parser.add_argument("--precision", default="fp16", help="of layers in half precision (default: %(default)s)")
    parser.add_argument("--kernels", action="store_true", help="a line for each kernel, too")
    options = parser.parse_args()
    cpus = options.cpu.split(",")
    for cpu in cpus:
        if reason := why_not(options.emulators, cpu):
            raise SystemExit(reason)
    print(f"{'processor':14s} {'layer':36s} {'needed':>9s} {'taken':>10s} {'ratio':>6s}")
    with tempfile.TemporaryDirectory() as folder:
        plugin = compiled_plugin(Path(folder))
        for cpu in cpus:
            for layer in layers():
                if options.only not in layer.name:
                    continue
                kernels = counted(layer, cpu, options.emulators, plugin, Path(folder), options.precision)
                least, taken = needed(layer, read_processor(cpu)), sum(kernels.values())
                print(f"{cpu:14s} {layer.name:36s} {least:9d} {taken:10d} {taken / least:6.2f}", flush=True)
                for name, count in kernels.items() if options.kernels else ():
                    print(f"{'':14s}   {name:44s} {count:10d}")


if __name__ == "__main__":
    main()
