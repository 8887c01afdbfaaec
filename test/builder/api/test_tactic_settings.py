"""What a configuration says of tactics and of their times, down to the build (tensorrt-features.md#15.5, 15.9 to
15.16).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from fake_timer import FakeTimer, without_compiler
from layer_networks import CollectingLogger, new_network

import mlirt as trt
from mlirt.builder.api import builder_config
from mlirt.builder.api.builder_config import IBuilderConfig
from mlirt.builder.config.build_config import BuildConfig
from mlirt.builder.tactics import tuning
from mlirt.errors import InvalidInputError


@pytest.fixture
def timer(monkeypatch: pytest.MonkeyPatch) -> FakeTimer:
    """Builds find a device that measures what they ask for."""
    timer = FakeTimer()
    without_compiler(monkeypatch)
    monkeypatch.setattr(tuning, "device_timer", lambda rounds=7: timer)
    return timer


@pytest.fixture
def logger() -> CollectingLogger:
    return CollectingLogger()


@pytest.fixture
def config(logger: CollectingLogger) -> IBuilderConfig:
    config = trt.Builder(logger).create_builder_config()
    config.target = "cuda"
    return config


def network() -> trt.INetworkDefinition:
    """All the kinds of layers whose times are kept, with a softmax, for which there is one way."""
    network, noise = new_network(), np.random.default_rng(0)

    def weights(*shape: int) -> trt.Weights:
        return trt.Weights(noise.standard_normal(shape).astype(np.float32))

    def named(layer: trt.ILayer, name: str) -> trt.ITensor:
        layer.name = name
        return layer.get_output(0)

    x = network.add_input("x", trt.float32, (2, 32, 8, 8))
    convolution = network.add_convolution_nd(x, 32, (3, 3), weights(32, 32, 3, 3), trt.Weights(trt.float32))
    convolution.padding_nd = (1, 1)
    x = named(convolution, "conv")
    deconvolution = network.add_deconvolution_nd(x, 32, (2, 2), weights(32, 32, 2, 2), trt.Weights(trt.float32))
    deconvolution.stride_nd = (2, 2)
    pooling = network.add_pooling_nd(named(deconvolution, "deconv"), trt.PoolingType.MAX, (2, 2))
    pooling.stride_nd = (2, 2)
    shuffle = network.add_shuffle(named(pooling, "pool"))
    shuffle.reshape_dims, shuffle.second_transpose = (2, 32, 64), (0, 2, 1)
    softmax = network.add_softmax(named(shuffle, "shuffle"))
    softmax.axes = 1 << 2
    known = network.add_constant((2, 32, 48), weights(2, 32, 48)).get_output(0)
    none = trt.MatrixOperation.NONE
    y = named(network.add_matrix_multiply(named(softmax, "softmax"), none, known, none), "matmul")
    y.name = "y"
    network.mark_output(y)
    return network


def small_network() -> trt.INetworkDefinition:
    network = new_network()
    x = network.add_input("x", trt.float32, (64, 64))
    transpose = trt.MatrixOperation.TRANSPOSE
    y = network.add_matrix_multiply(x, trt.MatrixOperation.NONE, x, transpose).get_output(0)
    y.name = "y"
    network.mark_output(y)
    return network


def test_times_are_kept_in_the_cache_that_is_set(config: IBuilderConfig, timer: FakeTimer) -> None:
    """tensorrt-features.md#15.9, 15.11, 15.12: what there are several ways for; the second build measures nothing."""
    cache = config.create_timing_cache(b"")
    assert config.set_timing_cache(cache, ignore_mismatch=False)
    builder = trt.Builder(trt.Logger())
    first = builder.build_serialized_network(network(), config)
    layers = {launch.layer for plan in timer.plans for launch in plan.manifest.launches}
    assert {"conv", "deconv", "pool", "shuffle", "matmul"} <= layers
    assert "softmax" not in layers
    assert len(cache) >= 5
    timer.plans.clear()
    again = config.create_timing_cache(cache.serialize())
    config.set_timing_cache(again, ignore_mismatch=False)
    assert builder.build_serialized_network(network(), config) == first
    assert not timer.plans


def test_without_the_cache_times_are_measured_and_not_kept(config: IBuilderConfig, timer: FakeTimer) -> None:
    """tensorrt-features.md#15.11."""
    cache = config.create_timing_cache(b"")
    config.set_timing_cache(cache, ignore_mismatch=False)
    config.set_flag(trt.BuilderFlag.DISABLE_TIMING_CACHE)
    assert trt.Builder(trt.Logger()).build_serialized_network(small_network(), config) is not None
    assert timer.plans
    assert len(cache) == 0


def test_a_cache_of_another_machine_is_refused(
    config: IBuilderConfig, logger: CollectingLogger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tensorrt-features.md#15.10."""
    monkeypatch.setattr(builder_config, "this_place", lambda: "this device")
    cache = config.create_timing_cache(b"")
    assert config.set_timing_cache(cache, ignore_mismatch=False)
    cache.put("another device", "op", {"generic": 1.0})
    assert not config.set_timing_cache(cache, ignore_mismatch=False)
    assert "the timing cache was not made here: it has times of another device" in logger.text()
    assert config.set_timing_cache(cache, ignore_mismatch=True)
    cache.put("this device", "op", {"generic": 1.0})
    assert config.set_timing_cache(cache, ignore_mismatch=False)


def test_heuristics_measure_nothing(config: IBuilderConfig, timer: FakeTimer) -> None:
    """tensorrt-features.md#15.15: on every device."""
    config.set_flag(trt.BuilderFlag.ENABLE_TACTIC_HEURISTIC)
    assert trt.Builder(trt.Logger()).build_serialized_network(small_network(), config) is not None
    assert not timer.plans


def test_more_iterations_are_longer_measurements(config: IBuilderConfig, timer: FakeTimer) -> None:
    """tensorrt-features.md#15.16."""
    config.avg_timing_iterations = 3
    trt.Builder(trt.Logger()).build_serialized_network(small_network(), config)
    assert min(len(plan.manifest.launches) for plan in timer.plans) == 3


def test_a_selector_that_allows_nothing(config: IBuilderConfig, timer: FakeTimer) -> None:
    """tensorrt-features.md#15.5: an error in the log and no plan, where the flag says so."""

    class Nothing(trt.IAlgorithmSelector):
        def select_algorithms(self, context: trt.IAlgorithmContext, choices: Sequence[trt.IAlgorithm]) -> list[int]:
            return []

        def report_algorithms(
            self, contexts: Sequence[trt.IAlgorithmContext], choices: Sequence[trt.IAlgorithm]
        ) -> None: ...

    logger = CollectingLogger()
    builder, config.algorithm_selector = trt.Builder(logger), Nothing()
    assert builder.build_serialized_network(small_network(), config) is not None
    config.set_flag(trt.BuilderFlag.REJECT_EMPTY_ALGORITHMS)
    assert builder.build_serialized_network(small_network(), config) is None
    assert "REJECT_EMPTY_ALGORITHMS" in logger.text()


@pytest.mark.parametrize("source", trt.TacticSource)
def test_sources_are_kept(config: IBuilderConfig, source: trt.TacticSource) -> None:
    """tensorrt-features.md#15.13: all are permitted, none is used by itself; a bit that is no source is refused."""
    assert config.get_tactic_sources() == 31
    assert config.measured_libraries == ()
    assert not config.set_tactic_sources(1 << 20)
    assert config.set_tactic_sources(1 << int(source))
    assert config.get_tactic_sources() == 1 << int(source)


def test_no_build_needs_a_source(config: IBuilderConfig, timer: FakeTimer) -> None:
    """tensorrt-features.md#15.14: there is a kernel of our own for every layer, so that no mask makes a build fail."""
    assert config.set_tactic_sources(0)
    plan = trt.Builder(trt.Logger()).build_serialized_network(small_network(), config)
    assert plan is not None
    assert b'"library"' not in bytes(plan)


@pytest.mark.parametrize("forbidden", [False, True])
def test_no_library_with_the_preview_feature_28_2(monkeypatch: pytest.MonkeyPatch, forbidden: bool) -> None:
    """DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805 goes before what `set_tactic_sources` asks for."""
    asked: list[Sequence[str]] = []

    def noted(asked_for: BuildConfig, target: str) -> object:
        assert target == "cuda"
        asked.append(asked_for.tactic_sources)
        raise InvalidInputError("no further")

    monkeypatch.setattr("mlirt.builder.api.network_build.tuning_of", noted)
    builder = trt.Builder(CollectingLogger())
    config = builder.create_builder_config()
    config.target = "cuda"
    config.set_tactic_sources(1 << int(trt.TacticSource.CUBLAS_LT) | 1 << int(trt.TacticSource.CUDNN))
    feature = trt.PreviewFeature.DISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805
    config.set_preview_feature(feature, forbidden)
    assert config.get_preview_feature(feature) is forbidden
    assert builder.build_serialized_network(network(), config) is None
    assert asked == [() if forbidden else ("CUBLAS_LT", "CUDNN")]
