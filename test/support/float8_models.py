"""ONNX models of layers on 8-bit floats."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from mlirt.dialects.float8 import rounded

FLOAT8 = TensorProto.FLOAT8E4M3FN


def float8_chain(rows: int | str, sizes: Sequence[int], *, per_column: bool = True) -> onnx.ModelProto:
    """Products of quantised tensors with known 8-bit floats, each with a bias and a rectifier."""
    noise, last = np.random.default_rng(0), "x"
    nodes = list[onnx.NodeProto]()
    stored = [
        numpy_helper.from_array(np.full((), 0.02, np.float32), "sx"),
        helper.make_tensor("zero", FLOAT8, [], [0.0]),
    ]
    for k in range(len(sizes) - 1):
        depth, columns = sizes[k], sizes[k + 1]
        weights, scale = noise.normal(size=(depth, columns)), np.float32(depth**-0.5)
        scales = (scale * np.linspace(0.5, 1, columns)).astype(np.float32) if per_column else scale
        arrays = {f"w{k}": rounded(weights), f"s{k}": scales, f"b{k}": noise.normal(size=columns).astype(np.float32)}
        stored += [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
        nodes += [
            helper.make_node("QuantizeLinear", [last, "sx", "zero"], [f"q{k}"], name=f"quantize{k}"),
            helper.make_node("DequantizeLinear", [f"q{k}", "sx"], [f"d{k}"], name=f"dequantize{k}"),
            helper.make_node("DequantizeLinear", [f"w{k}", f"s{k}"], [f"v{k}"], name=f"weights{k}", axis=1),
            helper.make_node("MatMul", [f"d{k}", f"v{k}"], [f"p{k}"], name=f"product{k}"),
            helper.make_node("Add", [f"p{k}", f"b{k}"], [f"a{k}"], name=f"bias{k}"),
            helper.make_node("Relu", [f"a{k}"], [f"y{k}"], name=f"relu{k}"),
        ]
        last = f"y{k}"
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [rows, sizes[0]])
    y = helper.make_tensor_value_info(last, TensorProto.FLOAT, [rows, sizes[-1]])
    graph = helper.make_graph(nodes, "float8", [x], [y], stored)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
