"""Writes convolutions between layers whose channels come last, as converters leave them: `python networks.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

SIZES = {"channels_last_small": (16, 12, 2), "channels_last_28": (64, 28, 3), "channels_last_14": (128, 14, 3)}
"""Channels, the side of the image, the number of blocks."""

BLOCK = """
    convolved{n} = Conv<pads = [1, 1, 1, 1]>(x{n}, weight)
    last{n} = Transpose<perm = [0, 2, 3, 1]>(convolved{n})
    scaled{n} = Mul(last{n}, scale)
    shifted{n} = Add(scaled{n}, shift)
    sigmoid{n} = Sigmoid(shifted{n})
    silu{n} = Mul(shifted{n}, sigmoid{n})
    before{n} = Transpose<perm = [0, 2, 3, 1]>(x{n})
    total{n} = Add(silu{n}, before{n})
    x{next} = Transpose<perm = [0, 3, 1, 2]>(total{n})
"""
HEAD = """
<ir_version: 9, opset_import: ["" : 17]>
channels_last (float[1, {channels}, {side}, {side}] x0) => (float[1, {channels}, {side}, {side}] x{blocks})
"""


def network(channels: int, side: int, blocks: int) -> onnx.ModelProto:
    """Input `x0` and the output, [1, channels, side, side], both float32; the blocks have the same weights."""
    body = "".join(BLOCK.format(n=n, next=n + 1) for n in range(blocks))
    head = HEAD.format(channels=channels, side=side, blocks=blocks)
    model = onnx.parser.parse_model(f"{head}{{{body}}}")
    random = np.random.default_rng(0)
    kernel = random.standard_normal((channels, channels, 3, 3)) / (9 * channels) ** 0.5
    weights = {"weight": kernel, "scale": random.uniform(0.5, 1.5, channels), "shift": random.standard_normal(channels)}
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return model


if __name__ == "__main__":
    for file, sizes in SIZES.items():
        Path(f"{file}.onnx").write_bytes(network(*sizes).SerializeToString())
