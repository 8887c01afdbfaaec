"""Writes networks that normalise rows by their root mean square in front of products: `python networks.py`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

SIZES = {"rms_small": (4, 64, 16), "rms_row": (1, 768, 768), "rms_64": (64, 768, 256), "rms_512": (512, 512, 64)}
"""Rows, their length, and the columns of each product."""

GRAPH = """
<ir_version: 9, opset_import: ["" : 17]>
rms (float[1, {rows}, {length}] x) => (float[1, {rows}, {columns}] q, float[1, {rows}, {columns}] k)
<float two = {{2.0}}, float one = {{1.0}}, float epsilon = {{0.000001}}> {{
    square = Pow(x, two)
    mean = ReduceMean<axes = [-1]>(square)
    shifted = Add(mean, epsilon)
    root = Sqrt(shifted)
    factor = Div(one, root)
    normal = Mul(x, factor)
    scaled = Mul(normal, gamma)
    q = MatMul(scaled, query)
    k = MatMul(scaled, key)
}}
"""


def network(rows: int, length: int, columns: int) -> onnx.ModelProto:
    """Input `x` [1, rows, length], outputs `q` and `k` [1, rows, columns], all float32."""
    model = onnx.parser.parse_model(GRAPH.format(rows=rows, length=length, columns=columns))
    random = np.random.default_rng(0)
    weights = {"gamma": random.uniform(0.5, 1.5, length)}
    weights |= {name: random.standard_normal((length, columns)) / length**0.5 for name in ("query", "key")}
    for name, array in weights.items():
        model.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return model


if __name__ == "__main__":
    for file, sizes in SIZES.items():
        Path(f"{file}.onnx").write_bytes(network(*sizes).SerializeToString())
