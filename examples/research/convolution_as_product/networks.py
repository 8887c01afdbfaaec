"""Writes stacks of 1x1 convolutions and windows, as bottlenecks have them: `python networks.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

SIZES = {"bottleneck_small": (32, 16, 8, 1), "bottleneck_14": (512, 128, 14, 2), "bottleneck_28": (256, 64, 28, 2)}
"""Channels between blocks, channels inside of them, the side of the image, the number of blocks."""

BLOCK = """
    narrow{n} = Conv(x{n}, narrow_weight)
    first{n} = Relu(narrow{n})
    window{n} = Conv<pads = [1, 1, 1, 1]>(first{n}, window_weight)
    second{n} = Relu(window{n})
    wide{n} = Conv(second{n}, wide_weight)
    total{n} = Add(wide{n}, x{n})
    x{next} = Relu(total{n})
"""
HEAD = """
<ir_version: 9, opset_import: ["" : 17]>
bottleneck (float[1, {wide}, {side}, {side}] x0) => (float[1, {wide}, {side}, {side}] x{blocks})
"""


def network(wide: int, inside: int, side: int, blocks: int) -> onnx.ModelProto:
    """Input `x0` and the output, [1, wide, side, side], both float32; the blocks have the same weights."""
    body = "".join(BLOCK.format(n=n, next=n + 1) for n in range(blocks))
    head = HEAD.format(wide=wide, side=side, blocks=blocks)
    model = onnx.parser.parse_model(f"{head}{{{body}}}")
    random = np.random.default_rng(0)
    shapes = {"narrow": (inside, wide, 1, 1), "window": (inside, inside, 3, 3), "wide": (wide, inside, 1, 1)}
    for name, shape in shapes.items():
        array = random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), f"{name}_weight"))
    return model


if __name__ == "__main__":
    for file, sizes in SIZES.items():
        Path(f"{file}.onnx").write_bytes(network(*sizes).SerializeToString())
