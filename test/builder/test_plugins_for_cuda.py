"""Networks with plugins are compiled for GPUs where there is none: tensors of a plugin have the types it asks for."""

from __future__ import annotations

import numpy as np
import pytest
from repeat_plugin import Repeat

import mlirt as trt
from mlirt.runtime.plan_file import read_plan


@pytest.mark.parametrize("flags", [(), (trt.BuilderFlag.FP16,)])
def test_plugin_between_convolutions(flags: tuple[trt.BuilderFlag, ...]) -> None:
    """tensorrt-features.md#19.20: one launch that has no code, between images that may lie otherwise and in half
    precision.
    """
    builder = trt.Builder(trt.Logger())
    network = builder.create_network(1)
    x = network.add_input("x", trt.float32, (-1, 16, 8, 8))
    weights = np.ones((16, 16, 1, 1), np.float32)
    before = network.add_convolution_nd(x, 16, (1, 1), weights)
    layer = network.add_plugin_v2([before.get_output(0)], Repeat(2.0))
    layer.name = "rep"
    after = network.add_convolution_nd(layer.get_output(0), 16, (1, 1), weights)
    network.mark_output(after.get_output(0))
    config, profile = builder.create_builder_config(), builder.create_optimization_profile()
    config.target = "cuda"
    for flag in flags:
        config.set_flag(flag)
    profile.set_shape("x", *((n, 16, 8, 8) for n in (1, 2, 8)))
    config.add_optimization_profile(profile)
    plan = builder.build_serialized_network(network, config)
    assert plan is not None
    manifest = read_plan(bytes(plan)).manifest
    (number,) = manifest.hosted
    kernel = manifest.kernels[manifest.launches[number].kernel]
    assert kernel.plugin is not None
    assert (kernel.plugin.name, kernel.plugin.elements, kernel.plugin.ranks) == ("Repeat", ("float32",) * 2, (4, 4))
    assert (kernel.objects, kernel.written, manifest.launches[number].layer) == ({}, {1}, "rep")
    assert 0 < number < len(manifest.launches) - 1
