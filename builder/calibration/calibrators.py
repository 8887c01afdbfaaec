"""The four calibrator interfaces of TensorRT: users subclass one and give it batches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, ClassVar

from mlirt.builder.calibration import thresholds

if TYPE_CHECKING:
    from mlirt.builder.calibration.histogram import Array, Histogram


class CalibrationAlgoType(IntEnum):
    """What `IInt8Calibrator.get_algorithm` gives."""

    LEGACY_CALIBRATION = 0
    ENTROPY_CALIBRATION = 1
    ENTROPY_CALIBRATION_2 = 2
    MINMAX_CALIBRATION = 3


class IInt8Calibrator(ABC):
    """Gives batches of sample data, and keeps the cache. Subclasses of TensorRT's four classes run unchanged.

    `get_batch` returns one buffer for each name, or None after the last batch: a NumPy array, or the address of device
    memory as an integer.
    """

    algorithm: ClassVar[CalibrationAlgoType]
    cache_name: ClassVar[str]
    # Whether scales belong to the network's own tensors, so that the cache fits any target.
    before_fusion: ClassVar[bool] = True

    @abstractmethod
    def get_batch_size(self) -> int:
        """The samples in a batch; 1 for a network with dynamic dimensions."""

    @abstractmethod
    def get_batch(self, names: Sequence[str]) -> Sequence[Array | int] | None:
        """The next batch, one buffer for each input; None when there are no more."""

    def read_calibration_cache(self) -> bytes | None:
        """An earlier cache; with one, no batch is asked for."""
        return None

    def write_calibration_cache(self, cache: bytes) -> None:
        """Keep the cache; called once after calibration."""

    def get_algorithm(self) -> CalibrationAlgoType:
        return self.algorithm

    @abstractmethod
    def threshold(self, histogram: Histogram) -> float:
        """Where the range of a tensor ends."""


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """Least divergence of the distributions; the one to start with."""

    algorithm = CalibrationAlgoType.ENTROPY_CALIBRATION_2
    cache_name = "EntropyCalibration2"

    def threshold(self, histogram: Histogram) -> float:
        return thresholds.entropy(histogram)


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """The whole range that was seen."""

    algorithm = CalibrationAlgoType.MINMAX_CALIBRATION
    cache_name = "MinMaxCalibration"

    def threshold(self, histogram: Histogram) -> float:
        return thresholds.largest(histogram)


class IInt8EntropyCalibrator(IInt8Calibrator):
    """As IInt8EntropyCalibrator2, on the tensors that are left after fusion."""

    algorithm = CalibrationAlgoType.ENTROPY_CALIBRATION
    cache_name = "EntropyCalibration"
    before_fusion = False

    def threshold(self, histogram: Histogram) -> float:
        return thresholds.entropy(histogram)


class IInt8LegacyCalibrator(IInt8Calibrator):
    """A quantile of the magnitudes, on the tensors that are left after fusion.

    Subclasses say the quantile, and the part of it below which no range is cut (`get_regression_cutoff`).
    """

    algorithm = CalibrationAlgoType.LEGACY_CALIBRATION
    cache_name = "LegacyCalibration"
    before_fusion = False

    @abstractmethod
    def get_quantile(self) -> float: ...

    @abstractmethod
    def get_regression_cutoff(self) -> float: ...

    def read_histogram_cache(self, length: int) -> bytes | None:
        """Histograms of an earlier calibration; none unless a subclass keeps them."""
        return None

    def write_histogram_cache(self, cache: bytes, length: int) -> None:
        """Keep the histograms."""

    def threshold(self, histogram: Histogram) -> float:
        cut = thresholds.percentile(self.get_quantile())(histogram)
        return max(cut, self.get_regression_cutoff() * histogram.largest)
