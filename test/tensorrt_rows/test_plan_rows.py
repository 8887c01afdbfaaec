"""Rows of A21: what a plan tells whoever opens it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config

import mlirt as trt
from mlirt.builder.tactics.device_timer import DeviceTimer
from mlirt.builder.tactics.measurement import place_of
from mlirt.builder.tactics.timing_cache import TimingCache
from mlirt.dialects.context import RtContext
from mlirt.dialects.interpreter import interpret
from mlirt.dialects.locations import name_of
from mlirt.dialects.registry import register_dialects
from mlirt.dialects.source_parser import parse_source
from mlirt.dialects.trt.activation import ActivationOp
from mlirt.runtime.cuda_driver import CudaDriver
from mlirt.runtime.kept_network import network_text
from mlirt.runtime.plan_file import read_plan


def plan_of(verbosity: trt.ProfilingVerbosity, *flags: trt.BuilderFlag) -> bytes:
    """The plan of max(0, 2 * x)."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, (2, 3))
    doubled = network.add_elementwise(x, x, trt.ElementWiseOperation.SUM)
    layer = network.add_activation(doubled.get_output(0), trt.ActivationType.RELU)
    layer.name = "the rectifier"
    layer.get_output(0).name = "y"
    network.mark_output(layer.get_output(0))
    config = cpu_config(logger, *flags)
    config.profiling_verbosity = verbosity
    return bytes(built(network, config, logger).serialize())


def test_the_network_can_be_read_in_a_plan() -> None:
    """tensorrt-features.md#21.8: the container is that of docs/plan-format.md; the IR in it can be parsed and run."""
    text = network_text(read_plan(plan_of(trt.ProfilingVerbosity.LAYER_NAMES_ONLY)))
    ctx = RtContext()
    register_dialects(ctx)
    module, _ = parse_source(ctx, text, "network.mlir")
    (layer,) = [op for op in module.walk() if isinstance(op, ActivationOp)]
    assert name_of(layer) == "the rectifier"
    x = np.array([[1, -2, 3], [-4, 5, -6]], np.float32)
    np.testing.assert_array_equal(interpret(module, ctx, {"x": x})["y"], np.maximum(2 * x, 0))


@pytest.mark.parametrize("is_refittable", [False, True])
def test_plans_that_tell_nothing(is_refittable: bool) -> None:
    """tensorrt-features.md#21.8, 17.2: with NONE there is no text, unless a refit needs it."""
    flags = [trt.BuilderFlag.REFIT] if is_refittable else []
    plan = read_plan(plan_of(trt.ProfilingVerbosity.NONE, *flags))
    assert (network_text(plan) != "") == is_refittable


class OneDevice:
    """A driver's library with one device, of which it tells nothing."""

    def __getattr__(self, name: str) -> Any:
        class Function:
            argtypes: Any = None
            restype: Any = None

            def __call__(self, *arguments: Any) -> int:
                if name == "cuDeviceGetCount":
                    arguments[0]._obj.value = 1
                return 0

        self.__dict__[name] = Function()
        return self.__dict__[name]


def test_times_are_those_of_a_part_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#21.10: kernels are timed under the limit of MPS, and their times are kept for it alone."""
    times = TimingCache()
    for limit in ("", "50", "25"):
        monkeypatch.setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", limit)
        place = place_of(DeviceTimer(CudaDriver(OneDevice()), "sm_90", 1))
        assert times.get(place, "matmul") == {}
        times.put(place, "matmul", {"a": 1.0})
        assert (f"{limit} % of its threads" in place) == bool(limit)
        assert times.get(place_of(DeviceTimer(CudaDriver(OneDevice()), "sm_90", 1)), "matmul") == {"a": 1.0}
    assert len(times.places()) == 3
