"""One file in int8 for all systems: what is quantised, what is not, and batches of a fixed size."""

# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import onnx
import pytest
from cpu_peer import cpu_session
from mlperf.models import behind_products, model_file, products_of_tensors
from mlperf.workloads import WORKLOADS


def shapes(path: Path) -> list[list[int | str]]:
    graph = onnx.load(str(path)).graph
    return [
        [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]
        for value in (*graph.input, *graph.output)
    ]


@pytest.mark.parametrize("precision", ["fp32", "int8"])
def test_a_file_of_a_fixed_batch(precision: str, tmp_path: Path) -> None:
    workload = WORKLOADS["tiny_bert"]
    assert shapes(model_file(workload, precision, None, tmp_path))[0] == ["batch", 32]
    path = model_file(workload, precision, 3, tmp_path)
    assert shapes(path) == [[3, 32]] * 3 + [[3, 32, 2]]
    feeds = {name: np.stack([array] * 3) for name, array in workload.sample(0).items()}
    (found,) = cpu_session(path).run(None, feeds)
    assert found.shape == (3, 32, 2)
    assert model_file(workload, precision, 3, tmp_path) == path


def test_products_are_of_int8_and_boxes_are_not(tmp_path: Path) -> None:
    graph = onnx.load(str(model_file(WORKLOADS["tiny_detector"], "int8", None, tmp_path))).graph
    makers = {output: node for node in graph.node for output in node.output}
    kinds = {node.op_type: [makers[name].op_type for name in node.input[:2] if name in makers] for node in graph.node}
    assert kinds["Conv"] == ["DequantizeLinear", "DequantizeLinear"]
    for node in graph.node:
        if node.op_type in ("NonMaxSuppression", "TopK", "Exp", "GatherND"):
            assert all(makers[name].op_type != "DequantizeLinear" for name in node.input if name in makers), node.name
    weights = Counter(name for node in graph.node if node.op_type == "Conv" for name in node.input[1:2])
    assert set(weights.values()) == {1}


def test_int8_for_gpus_has_no_zero_points(tmp_path: Path) -> None:
    graph = onnx.load(str(model_file(WORKLOADS["tiny_bert"], "int8", None, tmp_path, signed=True))).graph
    arrays = {one.name: onnx.numpy_helper.to_array(one) for one in graph.initializer}
    points = [arrays[node.input[2]] for node in graph.node if node.op_type == "QuantizeLinear"]
    assert points
    assert all(one.dtype == np.int8 and not one.any() for one in points)


def test_what_is_behind_the_last_product() -> None:
    graph = WORKLOADS["tiny_detector"].model(1).graph
    behind = set(behind_products(graph))
    kinds = {node.op_type for node in graph.node if node.name in behind}
    assert {"TopK", "NonMaxSuppression", "ScatterND"} <= kinds
    assert not kinds & {"Conv", "Relu", "MaxPool", "Resize"}


def test_products_without_weights_are_those_of_attention() -> None:
    graph = WORKLOADS["tiny_bert"].model(1).graph
    names = products_of_tensors(graph)
    products = [node for node in graph.node if node.op_type == "MatMul"]
    weights = {one.name for one in graph.initializer}
    assert names == [node.name for node in products if node.input[1] not in weights]
    assert len(names) == 4  # two of each layer


def test_halves_take_and_give_what_float32_does(tmp_path: Path) -> None:
    workload = WORKLOADS["tiny_diffusion"]
    paths = [model_file(workload, precision, 1, tmp_path) for precision in ("fp32", "fp16")]
    assert shapes(paths[0]) == shapes(paths[1])
    feeds = {name: array[None] for name, array in workload.sample(0).items()}
    right, half = (cpu_session(path).run(None, feeds)[0] for path in paths)
    assert right.dtype == half.dtype == np.float32
    assert 0 < np.abs(right - half).mean() < 1e-2
