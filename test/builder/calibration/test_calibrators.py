"""Calibrators are asked as TensorRT asks them, and their caches are read before anything runs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from fake_driver import FakeDriver
from two_convolutions import TENSORS, network, samples

import mlirt
from mlirt.builder.calibration.addressed_batches import from_address
from mlirt.builder.calibration.calibrators import CalibrationAlgoType
from mlirt.builder.calibration.histogram import Array
from mlirt.errors import InvalidInputError
from mlirt.passes.quantization.calibration_cache import read_cache, write_cache

BATCH = 2


class Recording:
    """Gives batches and writes down every call; mixed into one of the four classes."""

    def __init__(self, batches: Sequence[Array], cache: bytes | None = None, size: int = BATCH) -> None:
        self.calls: list[object] = []
        self.size = size
        self.cache = cache
        self.written: bytes | None = None
        self._batches = iter(batches)

    def get_batch_size(self) -> int:
        self.calls.append("size")
        return self.size

    def get_batch(self, names: Sequence[str]) -> list[Array] | None:
        self.calls.append(list(names))
        batch = next(self._batches, None)
        return None if batch is None else [batch]

    def read_calibration_cache(self) -> bytes | None:
        self.calls.append("read")
        return self.cache

    def write_calibration_cache(self, cache: memoryview) -> None:
        self.calls.append("write")
        self.written = bytes(cache)


class Entropy2(Recording, mlirt.IInt8EntropyCalibrator2):
    pass


class MinMax(Recording, mlirt.IInt8MinMaxCalibrator):
    pass


class Entropy(Recording, mlirt.IInt8EntropyCalibrator):
    pass


class Legacy(Recording, mlirt.IInt8LegacyCalibrator):
    def get_quantile(self) -> float:
        return 0.99

    def get_regression_cutoff(self) -> float:
        return 0.5


def batches() -> list[Array]:
    return [samples(BATCH, seed) for seed in range(3)]


def build(calibrator: Any, model: Any = None, **options: Any) -> None:
    mlirt.compile(model or network(BATCH), "cpu", "int8", calibration=calibrator, **options)


def test_the_order_of_calls() -> None:
    """tensorrt-features.md#9.6, 9.9: the cache first, the batch size once, batches until there are no more, the cache
    once.
    """
    calibrator = MinMax(batches())
    build(calibrator)
    assert calibrator.calls == ["read", "size", ["x"], ["x"], ["x"], ["x"], "write"]
    assert calibrator.written is not None
    assert list(read_cache(calibrator.written, "MinMaxCalibration").scales) == TENSORS


def test_a_cache_is_read_first_and_then_nothing_is_asked() -> None:
    """tensorrt-features.md#9.8."""
    calibrator = MinMax(batches(), write_cache("MinMaxCalibration", dict.fromkeys(TENSORS, 0.1)))
    build(calibrator)
    assert calibrator.calls == ["read"]


@pytest.mark.parametrize(
    ("cache", "message"),
    [
        (write_cache("EntropyCalibration", {"x": 1.0}), "made by EntropyCalibration of version 8503"),
        (b"\x00\x01", "expected a first line such as TRT-8503-MinMaxCalibration"),
        (write_cache("MinMaxCalibration", {"other": 1.0}), "Could not find scales for tensor 'x'"),
    ],
)
def test_caches_of_something_else_are_refused(cache: bytes, message: str) -> None:
    """tensorrt-features.md#9.11, 31.7."""
    with pytest.raises(InvalidInputError, match=message):
        build(MinMax(batches(), cache))


@pytest.mark.parametrize(
    ("kind", "algorithm", "name", "tensors"),
    [
        (Entropy2, CalibrationAlgoType.ENTROPY_CALIBRATION_2, "EntropyCalibration2", TENSORS),
        (MinMax, CalibrationAlgoType.MINMAX_CALIBRATION, "MinMaxCalibration", TENSORS),
        (Entropy, CalibrationAlgoType.ENTROPY_CALIBRATION, "EntropyCalibration", ["x", "relu_1", "y"]),
        (Legacy, CalibrationAlgoType.LEGACY_CALIBRATION, "LegacyCalibration", ["x", "relu_1", "y"]),
    ],
)
def test_the_four_classes(
    kind: type[Recording], algorithm: CalibrationAlgoType, name: str, tensors: Sequence[str]
) -> None:
    """tensorrt-features.md#9.7: two count before fusion, two after it."""
    calibrator: Any = kind(batches())
    assert calibrator.get_algorithm() is algorithm
    build(calibrator)
    assert list(read_cache(calibrator.written, name).scales) == list(tensors)


def test_legacy_cuts_at_the_quantile_but_keeps_its_part_of_the_range() -> None:
    """tensorrt-features.md#9.15."""
    calibrator = Legacy(batches())
    build(calibrator)
    assert calibrator.written is not None
    scale = read_cache(calibrator.written).scales["x"]
    magnitudes = np.abs(np.concatenate(batches()))
    bin_width = 2 * np.abs(batches()[0]).max() / 2048  # the range that the first batch set has doubled once at most
    quantile = np.quantile(magnitudes, 0.99, method="inverted_cdf")
    assert quantile <= scale * 127 * (1 + 1e-6) <= quantile + 2 * bin_width
    assert scale * 127 > 0.5 * magnitudes.max()


def test_a_profile_says_the_shape_of_dynamic_networks() -> None:
    """tensorrt-features.md#9.18."""
    profiles = {"x": [(1, 3, 8, 8), (BATCH, 3, 8, 8), (4, 3, 8, 8)]}
    calibrator = MinMax(batches(), size=1)
    build(calibrator, network("n"), profiles=profiles)
    assert calibrator.written is not None
    with pytest.raises(InvalidInputError, match="usual shape of a profile; give profiles"):
        build(MinMax(batches(), size=1), network("n"))
    with pytest.raises(InvalidInputError, match="get_batch_size gives 2, expected 1 for input 'x'"):
        build(MinMax(batches(), size=2), network("n"), profiles=profiles)


def test_batches_that_do_not_fit() -> None:
    """tensorrt-features.md#9.6."""
    with pytest.raises(InvalidInputError, match="get_batch_size gives 7, expected 2"):
        build(MinMax(batches(), size=7))
    with pytest.raises(
        InvalidInputError, match=r"batch 0: input 'x' has shape \[1, 3, 8, 8\], expected \[2, 3, 8, 8\]"
    ):
        build(MinMax([samples(1)]))


def test_no_batch_at_all() -> None:
    """tensorrt-features.md#9.23: a warning; the engine computes in float."""
    with pytest.warns(UserWarning, match="no batch of calibration data came: the distribution of every tensor is"):
        engine = mlirt.compile(network(BATCH), "cpu", "int8", calibration=MinMax([]))
    x = samples(BATCH)
    np.testing.assert_allclose(engine.run({"x": x})["y"], mlirt.compile(network(BATCH), "cpu").run({"x": x})["y"])


def test_batches_by_address() -> None:
    """tensorrt-features.md#9.29: for an engine on the CPU they lie in the host's memory."""
    arrays = batches()
    by_address: Any = MinMax([])
    addresses = iter([[array.ctypes.data] for array in arrays])

    def get_batch(names: Sequence[str]) -> list[int] | None:
        return next(addresses, None)

    by_address.get_batch = get_batch
    by_array = MinMax(arrays)
    build(by_address)
    build(by_array)
    assert by_address.written == by_array.written


def test_an_address_that_is_none() -> None:
    addresses: Any = [0]
    nowhere = MinMax(addresses)
    with pytest.raises(InvalidInputError, match="the address of a tensor is 0"):
        build(nowhere)


def test_addresses_for_a_gpu_are_of_its_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """tensorrt-features.md#9.29: they are copied by the driver, after all that is queued."""
    driver = FakeDriver()
    monkeypatch.setattr("mlirt.runtime.cuda_driver.open_driver", lambda: driver)
    there = driver.allocate(16)
    driver.copy_to_device(there, np.arange(4, dtype=np.float32).ctypes.data, 16, 0)
    np.testing.assert_array_equal(from_address(there, [2, 2], "float32", "cuda"), [[0, 1], [2, 3]])
