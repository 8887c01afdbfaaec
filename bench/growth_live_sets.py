"""What an ONNX graph must hold at once, and by how much a process grows in which onnxruntime runs it.

python bench/growth_live_sets.py MODEL.onnx INPUTS.npz    two numbers of MiB
"""

from __future__ import annotations

import argparse
import ctypes
import gc
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from cpu_peer import cpu_session
from onnx import helper

Feeds = Mapping[str, np.ndarray[Any, np.dtype[Any]]]
RUNS = 3


def largest_live_set(model: onnx.ModelProto, feeds: Feeds) -> int:
    """Bytes of the values between nodes that somebody still reads, where most are; measured, not inferred.

    Inputs, outputs and what follows from constants alone do not count.
    """
    graph = model.graph
    varying = {value.name for value in graph.input} - {weight.name for weight in graph.initializer}
    inner: dict[str, tuple[int, int]] = {}
    for step, node in enumerate(graph.node):
        read = set(_reads(node))
        for name in read & inner.keys():
            inner[name] = inner[name][0], step
        if read & varying:
            varying.update(node.output)
            inner.update({name: (step, step) for name in node.output if name})
    outputs = {value.name for value in graph.output}
    names = [name for name in inner if name not in outputs]
    shown = onnx.ModelProto()
    shown.CopyFrom(model)
    shown.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in names)
    sizes = dict(zip(names, _sizes(shown, names, feeds), strict=True))
    changes = np.zeros(len(graph.node) + 1, np.int64)
    for name in names:
        first, last = inner[name]
        changes[first] += sizes[name]
        changes[last + 1] -= sizes[name]
    return int(np.cumsum(changes).max(initial=0))


def read(path: Path) -> onnx.ModelProto:
    """A model without external data."""
    return onnx.ModelProto.FromString(path.read_bytes())


def _sizes(model: onnx.ModelProto, names: list[str], feeds: Feeds) -> list[int]:
    """Bytes of values that a model shows; sequences have none."""
    if not names:
        return []
    values: list[object] = cpu_session(model, level="ORT_DISABLE_ALL").run(names, dict(feeds))
    return [int(getattr(value, "nbytes", 0)) for value in values]


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """The names that a node and what is in it read."""
    yield from node.input
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                yield from _reads(inner)


def growth_of_session(model: onnx.ModelProto, feeds: Feeds) -> int:
    """Bytes of memory that this process has more after three runs of a session than before them."""
    session = cpu_session(model, threads=2)
    _give_back_memory()
    before = _resident()
    for _ in range(RUNS):
        session.run(None, dict(feeds))
    return _resident() - before


def _give_back_memory() -> None:
    """What making the session has freed would serve its runs, and not be seen."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)


def _resident() -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * 1024
    raise OSError("/proc/self/status has no VmRSS")


def main() -> None:
    """Print both numbers."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("inputs", type=Path)
    arguments = parser.parse_args()
    model, feeds = read(arguments.model), dict(np.load(arguments.inputs))
    grown = growth_of_session(model, feeds)
    print(f"{largest_live_set(model, feeds) / 2**20:.6f} {grown / 2**20:.6f}")


if __name__ == "__main__":
    main()
