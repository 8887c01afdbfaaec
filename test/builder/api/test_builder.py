"""Builder: from a network to a plan, with errors in the log and None as the answer (rows 2.15, 3.1 to 3.3, 3.19)."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network

import mlirt as trt
from mlirt.builder.api.builder_config import IBuilderConfig


def double(network: trt.INetworkDefinition, shape: tuple[int, ...]) -> trt.INetworkDefinition:
    """A network that doubles its input."""
    x = network.add_input("x", trt.float32, shape)
    y = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def cpu_config(builder: trt.Builder) -> IBuilderConfig:
    config = builder.create_builder_config()
    config.target = "cpu"
    return config


def run_static(plan: bytes, x: np.ndarray) -> np.ndarray:
    engine = trt.Runtime(trt.Logger()).deserialize_cuda_engine(plan)
    assert engine is not None
    context = engine.create_execution_context()
    y = np.empty_like(x)
    assert context.execute_v2([x.ctypes.data, y.ctypes.data])
    return y


def test_plan_runs_when_all_that_made_it_is_gone() -> None:
    """Rows 2.14, 3.1."""
    logger = trt.Logger()
    builder = trt.Builder(logger)
    network = double(new_network(), (3,))
    plan = builder.build_serialized_network(network, cpu_config(builder))
    assert plan is not None
    assert plan.nbytes == len(plan) == len(bytes(plan))
    del builder, network, logger
    gc.collect()
    np.testing.assert_array_equal(run_static(plan, np.array([1, 2, 3], np.float32)), [2, 4, 6])


def test_network_is_built_twice() -> None:
    """Row 3.16: the same network and settings give the same bytes."""
    builder = trt.Builder(trt.Logger())
    network = double(new_network(), (3,))
    first, second = (builder.build_serialized_network(network, cpu_config(builder)) for _ in range(2))
    assert first == second


def test_failed_build_gives_none_and_builder_goes_on() -> None:
    """Rows 2.13, 2.15, 3.1, 3.19."""
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (3,))
    config = cpu_config(builder)
    assert builder.build_serialized_network(network, config) is None
    assert "Error Code 4: Internal Error (Network must have at least one output)" in logger.text()
    assert not builder.is_network_supported(network, config)
    network.mark_output(network.add_identity(x).get_output(0))
    assert builder.is_network_supported(network, config)
    assert builder.build_serialized_network(network, config) is not None


def test_dynamic_network_needs_a_profile() -> None:
    """Row 12.2."""
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    network = double(new_network(logger), (-1, 3))
    assert builder.build_serialized_network(network, cpu_config(builder)) is None
    assert "dynamic or shape inputs, but no optimization profile has been defined" in logger.text()
    config, profile = cpu_config(builder), builder.create_optimization_profile()
    profile.set_shape("other", (1,), (1,), (1,))
    config.add_optimization_profile(profile)
    assert builder.build_serialized_network(network, config) is None
    assert "x: optimization profile 0 is missing" in logger.text()


def test_build_engine_is_deprecated() -> None:
    """Row 3.2."""
    builder = trt.Builder(trt.Logger())
    with pytest.warns(DeprecationWarning, match="Use build_serialized_network instead"):
        engine = builder.build_engine(double(new_network(), (3,)), cpu_config(builder))
    assert engine is not None
    assert engine.num_io_tensors == 2


def test_properties() -> None:
    """Rows 3.3, 4.13."""
    logger = trt.Logger()
    builder = trt.Builder(logger)
    assert builder.logger is logger
    assert (builder.num_DLA_cores, builder.max_DLA_batch_size) == (0, 0)
    has_gpu = builder.platform_has_fast_fp16
    assert builder.platform_has_tf32 == has_gpu
    assert isinstance(builder.platform_has_fast_int8, bool)
    with pytest.warns(DeprecationWarning, match="batch dimension of the inputs"):
        assert builder.max_batch_size == 1
