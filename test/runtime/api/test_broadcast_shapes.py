"""Two dimensions of -1 that a run makes 1 and 5 broadcast by TensorRT's names (tensorrt-features.md#1.10a, 1.22a, 1.23,
1.35).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network

import mlirt as trt

Shape = tuple[int, ...]
Add = Callable[[trt.INetworkDefinition, Sequence[trt.ITensor]], trt.ILayer]


def added(network: trt.INetworkDefinition, tensors: Sequence[trt.ITensor]) -> trt.ILayer:
    left, right = tensors
    return network.add_elementwise(left, right, trt.ElementWiseOperation.SUM)


def chosen(network: trt.INetworkDefinition, tensors: Sequence[trt.ITensor]) -> trt.ILayer:
    left, right = tensors
    greater = network.add_elementwise(left, right, trt.ElementWiseOperation.GREATER)
    greater.name = "first meeting"
    return network.add_select(greater.get_output(0), left, right)


def multiplied(network: trt.INetworkDefinition, tensors: Sequence[trt.ITensor]) -> trt.ILayer:
    left, right = tensors
    return network.add_matrix_multiply(left, trt.MatrixOperation.TRANSPOSE, right, trt.MatrixOperation.NONE)


def rectified(network: trt.INetworkDefinition, tensors: Sequence[trt.ITensor]) -> trt.ILayer:
    left, right = tensors
    return network.add_parametric_relu(left, right)


def engine_of(add: Add, inner: Shape, logger: trt.ILogger) -> trt.ICudaEngine:
    """A layer of two inputs whose first dimensions are -1, from 1 to 8 in its profile."""
    network = new_network(logger)
    inputs = [network.add_input(name, trt.float32, (-1, *inner)) for name in "ab"]
    layer = add(network, inputs)
    layer.name = "meeting"
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    builder = trt.Builder(logger)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = "cpu"
    for name, opt in (("a", 1), ("b", 5)):
        profile.set_shape(name, (1, *inner), (opt, *inner), (8, *inner))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan or b"")
    assert engine is not None
    return engine


def run(context: trt.IExecutionContext, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    for name, array in (("a", a), ("b", b)):
        assert context.set_input_shape(name, array.shape)
        context.set_tensor_address(name, array.ctypes.data)
    assert context.infer_shapes() == []
    result = np.empty(context.get_tensor_shape("y"), np.float32)
    context.set_tensor_address("y", result.ctypes.data)
    assert context.execute_async_v3(0)
    return result


CASES: dict[str, tuple[Add, Shape, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = {
    "elementwise": (added, (3,), lambda a, b: a + b),
    "select": (chosen, (3,), np.maximum),
    "parametric_relu": (rectified, (3,), lambda a, b: np.where(a >= 0, a, a * b)),
    "matrix_multiply": (multiplied, (2, 3), lambda a, b: a.swapaxes(1, 2) @ b),
}


@pytest.mark.parametrize("name", CASES)
def test_lengths_of_one_and_more(name: str) -> None:
    add, inner, function = CASES[name]
    logger = CollectingLogger()
    engine = engine_of(add, inner, logger)
    assert engine.get_tensor_shape("y")[0] == -1
    context = engine.create_execution_context()
    random = np.random.default_rng(0)
    for first, second in ((1, 5), (5, 1), (5, 5), (1, 1)):
        a, b = (random.normal(size=(length, *inner)).astype(np.float32) for length in (first, second))
        expected = function(a, b)
        found = run(context, a, b)
        assert found.shape == expected.shape == tuple(context.get_tensor_shape("y"))
        np.testing.assert_allclose(found, expected, 1e-5, 1e-6)
    assert context.set_input_shape("a", (4, *inner))
    assert context.set_input_shape("b", (5, *inner))
    assert not context.execute_async_v3(0)
    assert "meeting" in logger.text()
