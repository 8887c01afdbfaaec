"""Calibration on a GPU: the device counts as the host does, and a network's scales are those that the CPU finds."""

from __future__ import annotations

import numpy as np
import pytest
from two_convolutions import network, samples

import mlirt
from mlirt.builder.calibration.device_histograms import DeviceHistograms
from mlirt.builder.calibration.histogram import Histogram
from mlirt.runtime.cuda_driver import open_driver
from mlirt.runtime.cuda_memory import DeviceBlock
from mlirt.runtime.device import DeviceTensor

pytestmark = pytest.mark.gpu


def test_the_device_counts_as_the_host_does() -> None:
    driver = open_driver()
    driver.activate()
    counting = DeviceHistograms.on_this_machine()
    ours, theirs = {"x": Histogram("x")}, Histogram("x")
    for spread in (1, 7, 0.1):
        x = np.maximum(np.random.default_rng(0).standard_normal(3_000_001), -1).astype(np.float32) * np.float32(spread)
        x[::5] = 0
        block = DeviceBlock(driver, x.nbytes)
        driver.copy_to_device(block.address, x.ctypes.data, x.nbytes, 0)
        driver.synchronize(0)
        counting.add({"x": DeviceTensor(block.address, x.shape)}, ours)
        theirs.add(x)
    np.testing.assert_array_equal(ours["x"].counts, theirs.counts)
    assert (ours["x"].largest, ours["x"].zeros) == (theirs.largest, theirs.zeros)


@pytest.mark.parametrize("method", ["entropy", "minmax", "mse"])
def test_scales_are_those_of_the_cpu(method: str) -> None:
    """tensorrt-features.md#9.25: a cache of one target serves the other."""
    ours, theirs = (mlirt.calibrate(network(), samples(64), method, batch_size=8, target=t) for t in ("cuda", "cpu"))
    assert list(ours.scales) == list(theirs.scales)
    for name, scale in theirs.scales.items():
        assert ours.scales[name] == pytest.approx(scale, rel=0.02)
    again = mlirt.calibrate(network(), samples(64), method, batch_size=8, target="cuda")
    assert again.to_bytes() == ours.to_bytes()


def test_the_engine_on_int8_is_close() -> None:
    found = mlirt.calibrate(network(), samples(64), "minmax", batch_size=8, target="cuda")
    x = {"x": samples(8)}
    exact = mlirt.compile(network(), "cuda").run(x)["y"]
    for precision in ("int8", "int8+fp16"):
        close = mlirt.compile(network(), "cuda", precision, calibration=found).run(x)["y"]
        assert np.sqrt(np.square(close - exact).mean() / np.square(exact).mean()) < 0.03
