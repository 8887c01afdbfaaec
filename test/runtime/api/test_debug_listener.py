"""Debug tensors by TensorRT's names: marked in a network, shown to a listener behind each run."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest

import mlirt as trt

X = np.linspace(-2, 2, 6, dtype=np.float32).reshape(2, 3)


class Listener(trt.IDebugListener):
    """Keeps copies of what it is shown."""

    def __init__(self, answer: bool = True) -> None:
        super().__init__()
        self.answer, self.seen = answer, dict[str, Any]()

    def process_debug_tensor(
        self, addr: int, location: trt.TensorLocation, type: trt.DataType, shape: trt.Dims, name: str, stream: int
    ) -> bool:
        assert (location, type, stream) == (trt.TensorLocation.HOST, trt.float32, 0)
        count = trt.volume(shape)
        values = np.ctypeslib.as_array((ctypes.c_float * count).from_address(addr)).reshape(tuple(shape))
        self.seen[name] = values.copy()
        return self.answer


@pytest.fixture
def engine() -> trt.ICudaEngine:
    """y = exp(relu(x)), with x, relu's result and y itself marked."""
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (2, 3))
    relu = network.add_activation(x, trt.ActivationType.RELU).get_output(0)
    relu.name = "relu"
    y = network.add_unary(relu, trt.UnaryOperation.EXP).get_output(0)
    y.name = "y"
    network.mark_output(y)
    assert network.mark_debug(relu)
    assert not network.mark_debug(relu)
    assert network.mark_debug(y)
    assert network.unmark_debug(y)
    assert not network.unmark_debug(y)
    assert network.mark_debug(y)
    assert network.is_debug_tensor(relu)
    assert not network.is_debug_tensor(x)
    config = builder.create_builder_config()
    config.target = "cpu"
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    assert network.num_outputs == 1
    found = trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan)
    assert found is not None
    return found


def context_of(engine: trt.ICudaEngine, y: Any) -> trt.IExecutionContext:
    context = engine.create_execution_context()
    context.set_tensor_address("x", X.ctypes.data)
    context.set_tensor_address("y", y.ctypes.data)
    return context


def test_listener_sees_what_is_on(engine: trt.ICudaEngine) -> None:
    assert (engine.is_debug_tensor("relu"), engine.is_debug_tensor("x")) == (True, False)
    assert engine.num_layers == 1  # what is marked is not kept apart
    y, listener = np.empty_like(X), Listener()
    context = context_of(engine, y)
    assert context.set_debug_listener(listener)
    assert context.get_debug_listener() is listener
    assert context.execute_async_v3(0)
    assert listener.seen == {}
    assert context.set_tensor_debug_state("relu", True)
    assert not context.set_tensor_debug_state("other", True)
    assert (context.get_debug_state("relu"), context.get_debug_state("y")) == (True, False)
    assert context.execute_async_v3(0)
    assert list(listener.seen) == ["relu"]
    np.testing.assert_array_equal(listener.seen["relu"], np.maximum(X, 0))
    assert context.set_all_tensors_debug_state(True)
    assert context.execute_v2([X.ctypes.data, y.ctypes.data])
    assert list(listener.seen) == ["relu", "y"]
    np.testing.assert_allclose(listener.seen["y"], y, rtol=1e-6)
    np.testing.assert_allclose(y, np.exp(np.maximum(X, 0)), rtol=1e-6)
    assert context.set_debug_listener(None)
    listener.seen.clear()
    assert context.execute_async_v3(0)
    assert listener.seen == {}


def test_listener_that_refuses_or_fails(engine: trt.ICudaEngine, capfd: pytest.CaptureFixture[str]) -> None:
    context = context_of(engine, np.empty_like(X))
    context.set_all_tensors_debug_state(True)
    context.set_debug_listener(Listener(answer=False))
    assert not context.execute_async_v3(0)
    assert "relu: the debug listener returned False, which ends the run" in capfd.readouterr().err

    class Failing(Listener):
        def process_debug_tensor(
            self, addr: int, location: trt.TensorLocation, type: trt.DataType, shape: trt.Dims, name: str, stream: int
        ) -> bool:
            raise ValueError("no more space")

    context.set_debug_listener(Failing())
    assert not context.execute_async_v3(0)
    assert "relu: the debug listener failed: ValueError: no more space" in capfd.readouterr().err
