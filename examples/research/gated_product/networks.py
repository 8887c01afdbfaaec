"""Writes gated layers, silu(x U) * (x V) W, as language models have them: `python networks.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

SIZES = {
    "gated_small": (64, 32, 24),
    "gated_row": (1, 256, 688),
    "gated_wide_row": (1, 768, 2048),
    "gated_64": (64, 256, 688),
    "gated_tiny": (16, 24, 24),
}
"""Rows, their length, the columns of each of the gated products."""

GRAPH = """
<ir_version: 9, opset_import: ["" : 17]>
gated (float[1, {rows}, {length}] x) => (float[1, {rows}, {length}] y) {{
    gate = MatMul(x, u)
    sigmoid = Sigmoid(gate)
    silu = Mul(gate, sigmoid)
    linear = MatMul(x, v)
    gated = Mul(silu, linear)
    y = MatMul(gated, w)
}}
"""


def network(rows: int, length: int, columns: int) -> onnx.ModelProto:
    """Input `x` and output `y`, both [1, rows, length] in float32."""
    model = onnx.parser.parse_model(GRAPH.format(rows=rows, length=length, columns=columns))
    random = np.random.default_rng(0)
    for name, shape in {"u": (length, columns), "v": (length, columns), "w": (columns, length)}.items():
        array = random.standard_normal(shape) / shape[0] ** 0.5
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return model


if __name__ == "__main__":
    for file, sizes in SIZES.items():
        Path(f"{file}.onnx").write_bytes(network(*sizes).SerializeToString())
