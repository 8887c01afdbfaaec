"""Builder: from a network to a plan, with errors in the log and None as the answer (tensorrt-features.md#2.15, 3.1 to
3.3, 3.19).
"""

from __future__ import annotations

import gc
import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network

import mlirt as trt
from mlirt.builder.api.builder_config import IBuilderConfig
from mlirt.dialects.target import Target
from mlirt.errors import UnsupportedError


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
    """tensorrt-features.md#2.14, 3.1."""
    logger = trt.Logger()
    builder = trt.Builder(logger)
    network = double(new_network(), (3,))
    plan = builder.build_serialized_network(network, cpu_config(builder))
    assert plan is not None
    assert plan.nbytes == len(plan) == len(bytes(plan))
    del builder, network, logger
    gc.collect()
    np.testing.assert_array_equal(run_static(plan, np.array([1, 2, 3], np.float32)), [2, 4, 6])


@pytest.mark.parametrize("kind", [trt.Builder, trt.Runtime])
@pytest.mark.parametrize("logger", [None, 3, trt.Logger])
def test_loggers_are_loggers(kind: type[Any], logger: object) -> None:
    with pytest.raises(TypeError, match=f"{kind.__name__}.*logger: expected an ILogger"):
        kind(logger)


def test_a_selector_is_asked_about_an_engine_for_the_cpu() -> None:
    """tensorrt-features.md#15.1, 15.2, 15.5, 15.8: what it is told can be asked for again, and gives the same plan."""

    class Selector(trt.IAlgorithmSelector):
        def __init__(self, wanted: Sequence[Any] | None = None) -> None:
            super().__init__()
            self.wanted, self.told = wanted, list[Any]()

        def select_algorithms(self, context: Any, choices: Any) -> list[int]:
            if self.wanted is None:
                return list(range(len(choices)))
            return [place for place, one in enumerate(choices) if one.algorithm_variant in self.wanted]

        def report_algorithms(self, contexts: Any, choices: Any) -> None:
            self.told += [one.algorithm_variant for one in choices]

    logger = CollectingLogger()
    builder = trt.Builder(logger)
    config = cpu_config(builder)
    config.set_flag(trt.BuilderFlag.REJECT_EMPTY_ALGORITHMS)
    network = double(new_network(), (3,))
    plans = [builder.build_serialized_network(network, config)]
    config.algorithm_selector = first = Selector()
    plans.append(builder.build_serialized_network(network, config))
    config.algorithm_selector = second = Selector(first.told)
    plans.append(builder.build_serialized_network(network, config))
    assert plans[0] is not None
    assert plans[1:] == plans[:1] * 2
    assert first.told == second.told != []
    config.algorithm_selector = Selector([])
    assert builder.build_serialized_network(network, config) is None
    assert "the algorithm selector allows none of" in logger.text()


def test_network_is_built_twice() -> None:
    """tensorrt-features.md#3.16: the same network and settings give the same bytes."""
    builder = trt.Builder(trt.Logger())
    network = double(new_network(), (3,))
    first, second = (builder.build_serialized_network(network, cpu_config(builder)) for _ in range(2))
    assert first == second


def test_failed_build_gives_none_and_builder_goes_on() -> None:
    """tensorrt-features.md#2.13, 2.15, 3.1, 3.19."""
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
    """tensorrt-features.md#12.2."""
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    network = double(new_network(logger), (-1, 3))
    assert builder.build_serialized_network(network, cpu_config(builder)) is None
    assert "dynamic or shape inputs, but no optimization profile has been defined" in logger.text()
    config, profile = cpu_config(builder), builder.create_optimization_profile()
    profile.set_shape("other", (1,), (1,), (1,))
    config.add_optimization_profile(profile)
    assert builder.build_serialized_network(network, config) is None
    assert "x: optimization profile is missing the shapes of this input (profile 0)" in logger.text()


def test_build_engine_is_deprecated() -> None:
    """tensorrt-features.md#3.2."""
    builder = trt.Builder(trt.Logger())
    with pytest.warns(DeprecationWarning, match="Use build_serialized_network instead"):
        engine = builder.build_engine(double(new_network(), (3,)), cpu_config(builder))
    assert engine is not None
    assert engine.num_io_tensors == 2


def test_the_log_has_the_warnings_of_the_build_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def build(*_: object, **__: object) -> None:
        warnings.warn("layer conv1 holds its weights badly", stacklevel=2)
        warnings.warn("subprocess 7 is still running", ResourceWarning, stacklevel=2)
        raise UnsupportedError("no further")

    logger = CollectingLogger()
    builder = trt.Builder(logger)
    monkeypatch.setattr("mlirt.builder.api.network_build._plan", build)
    assert builder.build_serialized_network(double(new_network(), (3,)), cpu_config(builder)) is None
    assert logger.text(trt.Severity.WARNING) == "layer conv1 holds its weights badly"


def test_linear_is_chosen_where_it_is_allowed() -> None:
    """tensorrt-features.md#5.1."""
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    network = double(new_network(logger), (1, 4, 2, 2))
    network.get_input(0).allowed_formats = 1 << int(trt.TensorFormat.CHW4)
    assert builder.build_serialized_network(network, cpu_config(builder)) is None
    assert "x: the format CHW4 is for float16 and int8, not for float32" in logger.text()
    network.get_input(0).allowed_formats |= 1 << int(trt.TensorFormat.LINEAR)
    plan = builder.build_serialized_network(network, cpu_config(builder))
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan or b"")
    assert engine is not None
    assert engine.get_tensor_format("x") is trt.TensorFormat.LINEAR


class Ones(trt.IInt8MinMaxCalibrator):
    """Two batches, then a cache in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0
        self.cache: bytes | None = None

    def get_batch_size(self) -> int:
        return 1

    def get_batch(self, names: Sequence[str]) -> Sequence[Any] | None:
        self.asked += 1
        assert list(names) == ["x"]
        return [np.full((1, 4, 6, 6), self.asked, np.float32)] if self.asked <= 2 else None

    def read_calibration_cache(self) -> bytes | None:
        return self.cache

    def write_calibration_cache(self, cache: memoryview) -> None:
        self.cache = bytes(cache)


def test_int8_with_a_calibrator() -> None:
    """tensorrt-features.md#9.6, 9.8 to 9.10: batches once, then the cache alone."""
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (1, 4, 6, 6))
    conv = network.add_convolution_nd(x, 4, (3, 3), np.full((4, 4, 3, 3), 1 / 36, np.float32))
    network.mark_output(conv.get_output(0))
    config, calibrator = cpu_config(builder), Ones()
    config.set_flag(trt.BuilderFlag.INT8)
    config.int8_calibrator = calibrator
    plan = builder.build_serialized_network(network, config)
    assert plan is not None, logger.text()
    assert calibrator.asked == 3
    assert calibrator.cache is not None
    assert calibrator.cache.splitlines()[0] == b"TRT-8503-MinMaxCalibration"
    assert builder.build_serialized_network(network, config) == plan
    assert calibrator.asked == 3
    image = np.full((1, 4, 6, 6), 2, np.float32)
    engine = trt.Runtime(logger).deserialize_cuda_engine(plan)
    assert engine is not None
    found = np.empty((1, 4, 4, 4), np.float32)
    assert engine.create_execution_context().execute_v2([image.ctypes.data, found.ctypes.data])
    np.testing.assert_allclose(found, 2, rtol=0.02)


def test_properties(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#3.3, 4.13."""
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    assert builder.logger is logger
    assert (builder.num_DLA_cores, builder.max_DLA_batch_size) == (0, 0)
    has_gpu = builder.platform_has_fast_fp16
    assert builder.platform_has_tf32 == has_gpu
    assert isinstance(builder.platform_has_fast_int8, bool)
    if not has_gpu:
        without = Target("cpu", 256, frozenset({"avx2", "fma"}))
        for target, is_fast in ((without, False), (replace(without, special=frozenset({"avxvnni"})), True)):
            monkeypatch.setattr("mlirt.builder.host.cpu_target", lambda target=target: target)
            assert builder.platform_has_fast_int8 is is_fast

    class Allocator(trt.IGpuAllocator):
        def allocate(self, size: int, alignment: int, flags: int) -> int:
            raise AssertionError("asked before there is an engine")

    allocator = Allocator()
    for owner in (builder, trt.Runtime(logger)):
        assert owner.gpu_allocator is None
        owner.gpu_allocator = allocator
        assert owner.gpu_allocator is allocator
    with pytest.warns(DeprecationWarning, match="batch dimension of the inputs"):
        assert builder.max_batch_size == 1
