"""Random networks as ONNX models: images and sequences through random layers of random sizes, from a seed.

    python bench/random_networks.py OUT_DIR [--seeds 0-9]

The same seed gives the same bytes everywhere: NumPy draws everything, and nothing else is needed but onnx. Batches have
1 to 9 items, channels and lengths are often odd; every third network has dynamic lengths. Weights keep the variance of
what they multiply, so that half precision holds every tensor. Weights and inputs are rounded to half precision.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from graph_writer import GraphWriter
from onnx import helper
from random_image_layers import IMAGE_LAYERS, images
from random_layers import Value, Writer
from random_sequence_layers import SEQUENCE_LAYERS, sequences

Array = np.ndarray[Any, np.dtype[Any]]
Layer = Callable[[Writer, Value], Value]

_MIN_LAYERS, _MAX_LAYERS = 4, 12
_DYNAMIC = 3  # every so many networks have dynamic lengths


@dataclass(frozen=True)
class RandomNetwork:
    """A model, inputs for it, and whether the shapes of its inputs have names in place of some lengths."""

    name: str
    model: onnx.ModelProto
    inputs: dict[str, Array]
    dynamic: bool


def random_network(seed: int, layers: int | None = None) -> RandomNetwork:
    """The network of a seed, with so many layers after its first ones; by default 4 to 12."""
    random = np.random.default_rng([seed, 0x5EED])
    writer = Writer(GraphWriter(seed), random)
    dynamic = seed % _DYNAMIC == 2
    start, choices = (images, IMAGE_LAYERS) if seed % 2 == 0 else (sequences, SEQUENCE_LAYERS)
    x, lengths = start(writer)
    weights = np.array([weight for _, weight in choices], np.float64)
    for _ in range(layers or int(random.integers(_MIN_LAYERS, _MAX_LAYERS + 1))):
        layer = choices[int(random.choice(len(choices), p=weights / weights.sum()))][0]
        x = layer(writer, x)
    outputs = [x, *writer.also_returned]
    inputs = [_info(name, array, lengths if dynamic else {}) for name, array in writer.inputs.items()]
    made = writer.graph.model(f"random{seed}", inputs, [_output(one) for one in outputs])
    return RandomNetwork(f"random{seed}", made, dict(writer.inputs), dynamic)


def _info(name: str, array: Array, lengths: dict[tuple[str, int], str]) -> onnx.ValueInfoProto:
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    shape = [lengths.get((name, axis), size) for axis, size in enumerate(array.shape)]
    return helper.make_tensor_value_info(name, kind, shape)


def _output(value: Value) -> onnx.ValueInfoProto:
    open_: list[Any] = [None] * len(value.shape)
    return helper.make_tensor_value_info(value.name, onnx.TensorProto.FLOAT, open_)


def main() -> None:
    """Write models and their inputs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", default="0-9", help="from-to (default: %(default)s)")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    for seed in range(int(first), int(last or first) + 1):
        network = random_network(seed)
        folder = options.folder / network.name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "model.onnx").write_bytes(network.model.SerializeToString(deterministic=True))
        np.savez(folder / "inputs.npz", allow_pickle=False, **network.inputs)
        kinds = sorted({node.op_type for node in network.model.graph.node})
        shapes = ", ".join(f"{name} {list(array.shape)}" for name, array in network.inputs.items())
        print(f"{network.name}: {shapes}{' dynamic' if network.dynamic else ''}: {' '.join(kinds)}")


if __name__ == "__main__":
    main()
