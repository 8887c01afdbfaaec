"""Writes residual networks with squeeze-and-excitation, as SE-ResNet has it: `python networks.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

SIZES = {"se_small": (64, 16, 8, 1), "se_14": (512, 128, 14, 2), "se_28": (256, 64, 28, 2)}
"""Channels between blocks, channels inside of them, the side of the image, the number of blocks."""

BLOCK = """
    narrow{n} = Conv(x{n}, narrow_weight)
    first{n} = Relu(narrow{n})
    window{n} = Conv<pads = [1, 1, 1, 1]>(first{n}, window_weight)
    second{n} = Relu(window{n})
    wide{n} = Conv(second{n}, wide_weight, wide_bias)
    mean{n} = GlobalAveragePool(wide{n})
    squeezed{n} = Conv(mean{n}, squeeze_weight)
    third{n} = Relu(squeezed{n})
    excited{n} = Conv(third{n}, excite_weight)
    gate{n} = Sigmoid(excited{n})
    scaled{n} = Mul(wide{n}, gate{n})
    total{n} = Add(scaled{n}, x{n})
    x{next} = Relu(total{n})
"""
HEAD = """
<ir_version: 9, opset_import: ["" : 17]>
se (float[1, {wide}, {side}, {side}] x0) => (float[1, {wide}, {side}, {side}] x{blocks})
"""


def network(wide: int, inside: int, side: int, blocks: int) -> onnx.ModelProto:
    """Input `x0` and the output, [1, wide, side, side], both float32; the blocks have the same weights."""
    body = "".join(BLOCK.format(n=n, next=n + 1) for n in range(blocks))
    head = HEAD.format(wide=wide, side=side, blocks=blocks)
    shapes = {
        "narrow": (inside, wide, 1, 1),
        "window": (inside, inside, 3, 3),
        "wide": (wide, inside, 1, 1),
        "squeeze": (wide // 16, wide, 1, 1),
        "excite": (wide, wide // 16, 1, 1),
    }
    random = np.random.default_rng(0)
    weights = {"wide_bias": random.standard_normal(wide)}
    for name, shape in shapes.items():
        weights[f"{name}_weight"] = random.standard_normal(shape) / np.prod(shape[1:]) ** 0.5
    model = onnx.parser.parse_model(f"{head}{{{body}}}")
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return model


if __name__ == "__main__":
    for file, sizes in SIZES.items():
        Path(f"{file}.onnx").write_bytes(network(*sizes).SerializeToString())
