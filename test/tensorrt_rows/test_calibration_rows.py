"""Rows of A3 and A9 that calibrators answer: what the flags change, which buffers they are given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from layer_networks import CollectingLogger, new_network
from network_engines import built, cpu_config

import mlirt as trt

IMAGES = np.random.default_rng(0).standard_normal((3, 1, 4, 6, 6)).astype(np.float32)


class Calibrator(trt.IInt8EntropyCalibrator):
    """One that calibrates behind fusion unless it is told otherwise; batches by their address."""

    def __init__(self, count: int = len(IMAGES), cache: Any = None) -> None:
        super().__init__()
        self.left, self.cache, self.asked = list(IMAGES[:count]), cache, 0
        self.written: Any = None

    def get_batch_size(self) -> int:
        return 1

    def get_batch(self, names: Any) -> list[int] | None:
        self.asked += 1
        return [self.left.pop().ctypes.data] if self.left else None

    def read_calibration_cache(self) -> Any:
        return self.cache

    def write_calibration_cache(self, cache: Any) -> None:
        self.written = cache


def calibrated(calibrator: Calibrator, *, early: bool = False) -> tuple[trt.ICudaEngine, CollectingLogger]:
    """The engine of a convolution with ReLU and another one."""
    logger = CollectingLogger()
    network = new_network(logger)
    tensor = network.add_input("x", trt.float32, IMAGES.shape[1:])
    for name in ("c1", "c2"):
        kernel = np.random.default_rng(1).standard_normal((4, 4, 3, 3)).astype(np.float32)
        tensor = network.add_convolution_nd(tensor, 4, (3, 3), kernel).get_output(0)
        tensor.name = name
        tensor = network.add_activation(tensor, trt.ActivationType.RELU).get_output(0)
        tensor.name = name.replace("c", "r")
    network.mark_output(tensor)
    config = cpu_config(logger, trt.BuilderFlag.INT8)
    config.int8_calibrator = calibrator
    if early:
        config.set_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    return built(network, config, logger), logger


@pytest.mark.parametrize("early", [True, False])
def test_calibration_before_fusion(early: bool) -> None:
    """tensorrt-features.md#3.11, 9.7, 9.25: with the flag tensors that fusion removes have scales too."""
    calibrator = Calibrator()
    calibrated(calibrator, early=early)
    keys = [line.split(":")[0] for line in bytes(calibrator.written).decode().splitlines()[1:]]
    assert keys == (["x", "c1", "r1", "c2", "r2"] if early else ["x", "r1", "r2"])


def test_caches_are_memory() -> None:
    """tensorrt-features.md#9.8, 9.9: what is written has the buffer protocol, and is taken again from any buffer."""
    first = Calibrator()
    calibrated(first)
    assert type(first.written).__name__ == "memoryview"
    assert first.written.tobytes().startswith(b"TRT-8503-EntropyCalibration\n")
    for cache in (first.written, bytearray(first.written), first.written.tobytes()):
        second = Calibrator(cache=cache)
        calibrated(second)
        assert (second.asked, second.written) == (0, None)


def test_no_image_at_all() -> None:
    """tensorrt-features.md#9.23: a warning, and an engine in float; nothing is written."""
    calibrator = Calibrator(0)
    engine, logger = calibrated(calibrator)
    assert "the distribution of every tensor is all zero" in logger.text(trt.Severity.WARNING)
    assert calibrator.written is None
    types = [str(one["dtype"]) for layer in engine.engine.layers for one in layer["outputs"]]  # pyright: ignore[reportGeneralTypeIssues, reportUnknownVariableType, reportUnknownArgumentType]  (records of a plan are JSON)
    assert types
    assert set(types) == {"float32"}


@pytest.mark.parametrize("is_zero", [True, False])
def test_a_tensor_of_zeros_is_warned_of(is_zero: bool) -> None:
    """tensorrt-features.md#9.22: by name in the log, unless a ReLU makes it so of negative numbers."""
    logger = CollectingLogger()
    network = new_network(logger)
    x = network.add_input("x", trt.float32, IMAGES.shape[1:])
    kernel, bias = np.ones((4, 4, 1, 1), np.float32), np.full(4, 0 if is_zero else -1e3, np.float32)
    before = network.add_convolution_nd(x, 4, (1, 1), kernel, bias).get_output(0)
    y = network.add_activation(before, trt.ActivationType.RELU).get_output(0)
    before.name, y.name = "before", "rectified"
    network.mark_output(y)
    config, calibrator = cpu_config(logger, trt.BuilderFlag.INT8), Calibrator()
    zeros = np.zeros_like(IMAGES)
    if is_zero:
        calibrator.left = list(zeros)
    config.int8_calibrator = calibrator
    config.set_quantization_flag(trt.QuantizationFlag.CALIBRATE_BEFORE_FUSION)
    built(network, config, logger)
    log = logger.text(trt.Severity.WARNING)
    warned = [name for name in ("x", "before", "rectified") if f"Tensor {name} is uniformly zero." in log]
    assert warned == (["x", "before", "rectified"] if is_zero else [])
