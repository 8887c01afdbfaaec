"""The part `weights` of bench/growth.py: memory of a build, a save, a load and a run, by the bytes of the weights.

The networks are products with square matrices. Their weights lie in one file beside the model (`external`), or in the
model itself (`inside`). Each column is a process of its own; in front of each phase its peak is set back. Shown are MiB
of resident memory, and in brackets multiples of the weights' bytes in the model's file, without what the process had
before it began. `file` are pages of mapped files, which processes share and the system may drop.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path

import numpy as np
from growth_fit import numbers

Memory = dict[str, float]
_MODES = ("build", "load", "onnxruntime")
_MIB = 1 << 20


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--products", type=numbers, default=[2, 7, 30], help="matrices of a network; default: 2,7,30")
    parser.add_argument("--size", type=int, default=4096, help="rows of a matrix; default: %(default)s")
    parser.add_argument("--rows", type=int, default=1, help="rows of the network's input; default: %(default)s")
    parser.add_argument("--storage", default="float32,float16", help="default: %(default)s")
    parser.add_argument("--home", choices=["external", "inside"], default="external")
    parser.add_argument("--transposed", action="store_true", help="read each matrix a second time, as its transpose")
    parser.add_argument("--scaled", action="store_true", help="multiply each matrix by a vector, which a build does")
    parser.add_argument("--target", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--modes", default=",".join(_MODES), help="default: %(default)s")


def run(arguments: argparse.Namespace) -> None:
    for storage in arguments.storage.split(","):
        for products in arguments.products:
            with tempfile.TemporaryDirectory() as folder:
                path = Path(folder, "network.onnx")
                _in_a_child("write", path, arguments, products, storage)
                weights = products * arguments.size**2 * np.dtype(storage).itemsize
                print(f"{products} products, {storage} in {weights / 1e9:.2f} GB:")
                for mode in arguments.modes.split(","):
                    _show(mode, _in_a_child(mode, path, arguments, products, storage), weights)


def _in_a_child(
    mode: str, path: Path, arguments: argparse.Namespace, products: int, storage: str
) -> Mapping[str, Memory]:
    form = {"home": arguments.home, "transposed": arguments.transposed, "scaled": arguments.scaled}
    given = [arguments.size, products, arguments.rows, storage, form, arguments.target]
    command = [sys.executable, __file__, mode, str(path), json.dumps(given)]
    environment = {"MLIRT_CACHE": str(path.with_name("cache")), **os.environ, "MLIRT_PLAN_CACHE_MB": "0"}
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
    found: dict[str, Memory] = json.loads(done.stdout.splitlines()[-1])
    return found


def _show(mode: str, phases: Mapping[str, Memory], weights: int) -> None:
    before = phases["before"]
    for phase, memory in phases.items():
        if phase != "before":
            sizes = [
                f"{what} {memory[what]:7.0f} ({(memory[what] - before[what]) * _MIB / weights:5.2f})"
                for what in ("peak", "private", "file")
            ]
            print(f"  {mode:12s}{phase:8s}{'   '.join(sizes)}   {memory['seconds']:6.2f} s of CPU")
    sys.stdout.flush()


class Watch:
    """The memory of this process, phase by phase."""

    def __init__(self) -> None:
        self.phases: dict[str, Memory] = {}
        self._start = time.process_time()
        self.end("before")

    def end(self, phase: str) -> None:
        """A phase is over; the next one begins."""
        now = time.process_time()
        found = status()
        self.phases[phase] = {
            "peak": found["VmHWM"],
            "private": found["RssAnon"],
            "file": found["RssFile"],
            "seconds": now - self._start,
        }
        with suppress(OSError):
            Path("/proc/self/clear_refs").write_text("5")  # sets the peak back to what is resident now
        self._start = time.process_time()


def status() -> Memory:
    """The lines of /proc/self/status that are sizes, in MiB."""
    lines = (line.split() for line in Path("/proc/self/status").read_text().splitlines())
    return {words[0].rstrip(":"): int(words[1]) / 1024 for words in lines if words[-1] == "kB"}


def write(
    path: Path, size: int, products: int, rows: int, storage: str, *, home: str, transposed: bool, scaled: bool
) -> None:
    """The network of a number of products."""
    import onnx
    from onnx import TensorProto, helper

    kind, width = helper.np_dtype_to_tensor_dtype(np.dtype(storage)), size * size * np.dtype(storage).itemsize
    tensors, nodes, value = list[TensorProto](), list[onnx.NodeProto](), "x"
    generator, data = np.random.default_rng(0), path.with_name("weights.bin")
    with open(data, "wb") as file:
        for number in range(products):
            matrix = (generator.standard_normal((size, size), np.float32) / np.sqrt(np.float32(size))).astype(storage)
            tensor = TensorProto(name=f"w{number}", data_type=kind, dims=[size, size])
            if home == "external":
                file.write(matrix.data)
                entries = {"location": data.name, "offset": str(number * width), "length": str(width)}
                for key, text in entries.items():
                    tensor.external_data.add(key=key, value=text)
                tensor.data_location = TensorProto.EXTERNAL
            else:
                tensor.raw_data = matrix.tobytes()
            tensors.append(tensor)
            factor = f"w{number}"
            if scaled:
                scale = np.linspace(0.5, 1.5, size).astype(storage)
                tensors.append(TensorProto(name=f"s{number}", data_type=kind, dims=[size], raw_data=scale.tobytes()))
                nodes.append(helper.make_node("Mul", [factor, f"s{number}"], [f"f{number}"]))
                factor = f"f{number}"
            nodes.append(helper.make_node("MatMul", [value, factor], [f"y{number}"]))
            value = f"y{number}"
            if transposed:
                nodes.append(helper.make_node("Gemm", [value, f"w{number}"], [f"z{number}"], transB=1))
                value = f"z{number}"
    given, result = (helper.make_tensor_value_info(name, kind, [rows, size]) for name in ("x", value))
    graph = helper.make_graph(nodes, "products", [given], [result], tensors)
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]).SerializeToString())


def _build(path: Path, target: str, feeds: Mapping[str, np.ndarray]) -> Mapping[str, Memory]:
    import mlirt

    build = mlirt.compile
    watch = Watch()
    engine = build(path, target=target)
    watch.end("build")
    engine.save(path.with_suffix(".plan"))
    watch.end("save")
    if target == "cpu":
        engine.run(feeds)
        watch.end("run")
    return watch.phases


def _load(path: Path, feeds: Mapping[str, np.ndarray]) -> Mapping[str, Memory]:
    import mlirt

    load = mlirt.load
    watch = Watch()
    engine = load(path.with_suffix(".plan"))
    watch.end("load")
    engine.run(feeds)
    watch.end("run")
    second = load(path.with_suffix(".plan"))
    second.run(feeds)
    watch.end("second")
    return watch.phases


def _peer(path: Path, feeds: Mapping[str, np.ndarray]) -> Mapping[str, Memory]:
    from cpu_peer import cpu_session

    import_module("onnxruntime")
    watch = Watch()
    session = cpu_session(path)
    watch.end("load")
    session.run(None, dict(feeds))
    watch.end("run")
    return watch.phases


def _main() -> None:
    mode, path, given = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    size, products, rows, storage, form, target = given
    if mode == "write":
        write(path, size, products, rows, storage, **form)
        print("null")
        return
    feeds = {"x": np.ones((rows, size), storage)}
    if mode == "build":
        found = _build(path, target, feeds)
    else:
        found = _load(path, feeds) if mode == "load" else _peer(path, feeds)
    print(json.dumps(found))


if __name__ == "__main__":
    _main()
