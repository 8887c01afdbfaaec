"""Each optimization profile of an engine with dynamic inputs has one execution context at most
(tensorrt-features.md#12.7, 13.9).
"""

from __future__ import annotations

import numpy as np
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config

import mlirt as trt

TAKEN = "Profile 0 has been chosen by another IExecutionContext"


def engine_of(logger: CollectingLogger, profiles: int) -> trt.ICudaEngine:
    """y = -x; without profiles x has a static shape."""
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (-1, 2) if profiles else (3, 2))
    y = network.add_unary(x, trt.UnaryOperation.NEG).get_output(0)
    y.name = "y"
    network.mark_output(y)
    config = cpu_config(logger)
    for _ in range(profiles):
        profile = trt.Builder(logger).create_optimization_profile()
        profile.set_shape("x", (1, 2), (3, 2), (9, 2))
        config.add_optimization_profile(profile)
    return built(network, config, logger)


def runs(context: trt.IExecutionContext) -> bool:
    x, y = np.ones((3, 2), np.float32), np.zeros((3, 2), np.float32)
    context.set_input_shape("x", x.shape)
    context.set_tensor_address("x", x)
    context.set_tensor_address("y", y)
    return context.execute_async_v3(0) and bool((y == -1).all())


def test_a_second_context_of_the_only_profile() -> None:
    logger = CollectingLogger()
    engine = engine_of(logger, 1)
    first, second = engine.create_execution_context(), engine.create_execution_context()
    assert (first.active_optimization_profile, second.active_optimization_profile) == (0, -1)
    assert not second.set_optimization_profile_async(0, 0)
    assert TAKEN in logger.text()
    assert not second.set_input_shape("x", (3, 2))
    assert second.get_tensor_shape("x") == (-1, 2)
    assert second.infer_shapes() == ["x"]
    logger.messages.clear()
    assert not runs(second)
    assert "no optimization profile is chosen" in logger.text()
    assert runs(first), logger.text()
    del first
    assert second.set_optimization_profile_async(0, 0), "a context that is gone has no profile"
    assert runs(second), logger.text()


def test_a_context_for_each_profile() -> None:
    logger = CollectingLogger()
    engine = engine_of(logger, 2)
    first, second = engine.create_execution_context(), engine.create_execution_context()
    assert second.set_optimization_profile_async(1, 0)
    assert runs(first), logger.text()
    assert runs(second), logger.text()
    assert first.set_optimization_profile_async(0, 0), "it has it already"
    assert not first.set_optimization_profile_async(1, 0)
    del second
    assert first.set_optimization_profile_async(1, 0)
    third = engine.create_execution_context()
    assert third.active_optimization_profile == 0
    assert runs(third), logger.text()


def test_contexts_of_static_shapes() -> None:
    logger = CollectingLogger()
    engine = engine_of(logger, 0)
    contexts = [engine.create_execution_context() for _ in range(3)]
    assert all(runs(context) for context in contexts), logger.text()
