"""A GPU counts what the host counts: kernels in numba-cuda's simulator, what is around them on a fake driver."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from typing import Any

import fake_driver
import numpy as np
import pytest
from fake_driver import FakeDriver

from mlirt.builder.calibration.channel_collection import ChannelCollection
from mlirt.builder.calibration.device_histograms import DeviceHistograms, compiled
from mlirt.builder.calibration.histogram import BINS, Array, Histogram, counted
from mlirt.errors import InvalidInputError
from mlirt.runtime.device import DeviceTensor

_SIMULATED = """
import sys
import numpy as np
from numba import cuda
from mlirt.builder.calibration import device_kernels as kernels
from mlirt.builder.calibration.histogram import BINS, counted, factor_of

x = (np.random.default_rng(0).standard_normal(3000) * 2).astype(np.float32)
x[::3] = 0
blocks = 3
tops, rows, sums = np.zeros(blocks, np.float32), np.zeros(blocks * (BINS + 1), np.int32), np.zeros(BINS + 1, np.int64)
cuda.jit(kernels.largest)[blocks, 256](x, x.size, tops)
assert tops.max() == np.abs(x).max()
cuda.jit(kernels.count)[blocks, 256](x, x.size, factor_of(5.0), rows)
cuda.jit(kernels.sum_rows)[9, 256](rows, blocks, sums)
np.testing.assert_array_equal(sums[:BINS], counted(x, 5.0))
assert sums[BINS] == 1000
y = x.reshape(5, 6, 100)
reduced = np.zeros(18)
cuda.jit(kernels.reduce_channels)[6, 256](x, x.size, 6, 100, reduced)
wanted = np.stack([y.min((0, 2)), y.max((0, 2)), y.sum((0, 2), np.float64)], -1)
np.testing.assert_allclose(reduced.reshape(6, 3), wanted, rtol=1e-12, atol=1e-12)
x[7] = np.nan
cuda.jit(kernels.largest)[blocks, 256](x, x.size, tops)
assert np.isnan(tops.max())
x[7], x[8] = np.inf, -np.inf
cuda.jit(kernels.largest)[blocks, 256](x, x.size, tops)
assert tops.max() == np.inf
print("equal")
"""


def test_the_kernels_count_as_the_host_does() -> None:
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(
        [sys.executable, "-c", _SIMULATED], capture_output=True, text=True, check=False, env=environment
    )
    assert done.stdout == "equal\n", done.stderr


def test_the_kernels_compile() -> None:
    for name, code in compiled().items():
        assert code.startswith(b"\x7fELF")
        assert f".text.{name}".encode() in code


def _floats(address: int, count: int) -> Array:
    return np.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def _largest(tensor: int, size: int, tops: int) -> None:
    _floats(tops, 264)[:] = np.abs(_floats(tensor, size)).max()


def _count(tensor: int, size: int, factor: float, rows: int) -> None:
    x = _floats(tensor, size)
    row = np.ctypeslib.as_array((ctypes.c_int32 * (BINS + 1)).from_address(rows))
    row[:] = [*counted(x, BINS / factor), int((x == 0).sum())]


def _reduce_channels(tensor: int, size: int, channels: int, inner: int, rows: int) -> None:
    x = _floats(tensor, size).reshape(-1, channels, inner)
    numbers = np.ctypeslib.as_array((ctypes.c_double * (3 * channels)).from_address(rows)).reshape(channels, 3)
    numbers[:] = np.stack([x.min((0, 2)), x.max((0, 2)), x.sum((0, 2), np.float64)], -1)


def _sum_rows(rows: int, count: int, sums: int) -> None:
    row = np.ctypeslib.as_array((ctypes.c_int32 * (BINS + 1)).from_address(rows))
    np.ctypeslib.as_array((ctypes.c_int64 * (BINS + 1)).from_address(sums))[:] = row


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> DeviceHistograms:
    pointer, long, real = ctypes.c_uint64, ctypes.c_int64, ctypes.c_float
    kernels: dict[str, Any] = {
        "largest": (_largest, [pointer, long, pointer]),
        "count": (_count, [pointer, long, real, pointer]),
        "sum_rows": (_sum_rows, [pointer, long, pointer]),
        "reduce_channels": (_reduce_channels, [pointer, long, long, long, pointer]),
    }
    monkeypatch.setattr(fake_driver, "KERNELS", kernels)
    return DeviceHistograms(FakeDriver(), dict.fromkeys(kernels, b""))


def test_batches_add_up_to_the_same_histograms(device: DeviceHistograms) -> None:
    rng = np.random.default_rng(0)
    batches: list[dict[str, Array]] = [
        {
            "a": np.maximum(rng.standard_normal(500), 0).astype(np.float32),
            "b": rng.random(70, np.float32) * np.float32(size),
        }
        for size in (1, 5, 0)
    ]
    ours, theirs = ({name: Histogram(name) for name in "ab"} for _ in range(2))
    for batch in batches:
        device.add({name: DeviceTensor(array.ctypes.data, array.shape) for name, array in batch.items()}, ours)
        for name, array in batch.items():
            theirs[name].add(array)
    for name in "ab":
        np.testing.assert_array_equal(ours[name].counts, theirs[name].counts)
        same = ("limit", "largest", "zeros")
        assert [getattr(ours[name], what) for what in same] == [getattr(theirs[name], what) for what in same]


def test_infinities_end_the_counting_of_their_tensor_alone(device: DeviceHistograms) -> None:
    arrays = {"mask": np.array([0, -np.inf], np.float32), "x": np.array([1, 2], np.float32)}
    found = {name: Histogram(name) for name in arrays}
    device.add({name: DeviceTensor(array.ctypes.data, array.shape) for name, array in arrays.items()}, found)
    assert {name: one.elements for name, one in found.items()} == {"mask": 0, "x": 2}


def test_not_a_number_names_its_tensor(device: DeviceHistograms) -> None:
    array = np.array([1, np.nan], np.float32)
    with pytest.raises(InvalidInputError, match="tensor 'conv1' holds NaN while"):
        device.add({"conv1": DeviceTensor(array.ctypes.data, array.shape)}, {"conv1": Histogram("conv1")})


def test_channels_are_those_that_the_host_finds(device: DeviceHistograms) -> None:
    axes, rng = {"image": 1, "rows": 2}, np.random.default_rng(0)
    ours, theirs = ChannelCollection(axes), ChannelCollection(axes)
    for _ in range(3):
        arrays = {"image": rng.random((2, 3, 4, 5), np.float32), "rows": rng.random((2, 7, 6), np.float32) - 1}
        tensors = {name: DeviceTensor(array.ctypes.data, array.shape) for name, array in arrays.items()}
        for name, reduced in device.channels(tensors, axes).items():
            ours.add_reduced(name, reduced, arrays[name].size)
            theirs.add(name, arrays[name])
    for name, want in theirs.statistics().items():
        found = ours.statistics()[name]
        for part in ("least", "greatest", "means"):
            np.testing.assert_allclose(getattr(found, part), getattr(want, part), rtol=1e-6)
