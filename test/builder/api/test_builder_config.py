"""IBuilderConfig: flags, pools, profiles; what is not there is refused (tensorrt-features.md#3.4 to 3.15)."""

from __future__ import annotations

from typing import Any

import pytest
from layer_networks import CollectingLogger

import mlirt as trt
from mlirt.builder.api.builder_config import IBuilderConfig
from mlirt.errors import InvalidInputError


@pytest.fixture
def config() -> IBuilderConfig:
    return trt.Builder(trt.Logger()).create_builder_config()


@pytest.mark.parametrize("flag", trt.BuilderFlag)
def test_flags(config: IBuilderConfig, flag: trt.BuilderFlag) -> None:
    """tensorrt-features.md#3.4: TF32 alone is on in the beginning."""
    assert config.get_flag(flag) == (flag is trt.BuilderFlag.TF32)
    config.set_flag(flag)
    assert config.get_flag(flag)
    assert config.flags >> flag & 1
    config.clear_flag(flag)
    assert not config.get_flag(flag)
    config.flags = 1 << int(flag)
    assert [one for one in trt.BuilderFlag if config.get_flag(one)] == [flag]


@pytest.mark.parametrize("flag", ["FP16", 0, None])
def test_flags_are_members(config: IBuilderConfig, flag: Any) -> None:
    for method in (config.set_flag, config.clear_flag, config.get_flag):
        with pytest.raises(TypeError, match=r"_flag\(\): expected a BuilderFlag, got"):
            method(flag)


def test_memory_pools(config: IBuilderConfig) -> None:
    """tensorrt-features.md#3.6, 3.7."""
    config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 20)
    assert config.get_memory_pool_limit(trt.MemoryPoolType.WORKSPACE) == 1 << 20
    with pytest.warns(DeprecationWarning, match="Use get_memory_pool_limit instead"):
        assert config.max_workspace_size == 1 << 20


def test_values_and_reset(config: IBuilderConfig) -> None:
    """tensorrt-features.md#3.8, 3.10 to 3.14."""
    config.avg_timing_iterations, config.min_timing_iterations = 8, 1
    config.profiling_verbosity = trt.ProfilingVerbosity.DETAILED
    config.profile_stream = 7
    config.set_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    feature = trt.PreviewFeature.FASTER_DYNAMIC_SHAPES_0805
    config.set_preview_feature(feature, True)
    assert config.get_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    assert config.quantization_flags == 1
    assert config.get_preview_feature(feature)
    config.reset()
    assert not config.get_preview_feature(feature)
    assert (config.quantization_flags, config.profile_stream, config.flags) == (0, 0, 1 << int(trt.BuilderFlag.TF32))
    assert config.profiling_verbosity is trt.ProfilingVerbosity.LAYER_NAMES_ONLY


def test_capability_and_devices(config: IBuilderConfig) -> None:
    """tensorrt-features.md#3.9."""
    assert config.engine_capability is trt.EngineCapability.DEFAULT
    config.engine_capability = trt.EngineCapability.SAFE_GPU
    assert config.engine_capability is trt.EngineCapability.SAFETY
    assert config.default_device_type is trt.DeviceType.GPU
    config.default_device_type, config.DLA_core = trt.DeviceType.DLA, 1
    assert (config.default_device_type, config.DLA_core) == (trt.DeviceType.DLA, 1)
    config.reset()
    assert (config.engine_capability, config.DLA_core) == (trt.EngineCapability.STANDARD, -1)
    assert config.default_device_type is trt.DeviceType.GPU


def test_timing_cache(config: IBuilderConfig) -> None:
    cache = config.create_timing_cache(b"")
    assert isinstance(cache, trt.ITimingCache)
    assert config.get_timing_cache() is None
    assert config.set_timing_cache(cache, False)
    assert config.get_timing_cache() is cache
    assert config.create_timing_cache(cache.serialize()).serialize() == cache.serialize()


def test_profiles() -> None:
    """tensorrt-features.md#3.15, 12.3 to 12.6."""
    logger = CollectingLogger()
    builder = trt.Builder(logger)
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    assert profile, "it is valid, as long as no range contradicts itself"
    assert config.add_optimization_profile(profile) == 0, "what it lacks is known when a network is built"
    with pytest.raises(InvalidInputError, match="'x': expected min <= opt <= max"):
        profile.set_shape("x", (2,), (1,), (3,))
    profile.set_shape("x", (1, 3), (2, 3), (4, 3))
    assert profile.get_shape("x") == [(1, 3), (2, 3), (4, 3)]
    assert profile.get_shape("y") == []
    profile.set_shape_input("s", [1], [2], [3])
    assert profile.get_shape_input("s") == [[1], [2], [3]]
    assert (config.add_optimization_profile(profile), config.num_optimization_profiles) == (1, 2)
    assert config.get_calibration_profile() is None
    assert config.set_calibration_profile(profile)
    assert config.get_calibration_profile() is profile
