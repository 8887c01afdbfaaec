"""The four calibrator interfaces of TensorRT: users subclass one and give it batches.

Objects of TensorRT's own classes serve as well: what counts are their methods, and what `get_algorithm` gives.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from enum import IntEnum
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeGuard

from mlirt.builder.calibration import thresholds
from mlirt.builder.calibration.methods import Method

if TYPE_CHECKING:
    from mlirt.builder.calibration.histogram import Array, Histogram


class CalibrationAlgoType(IntEnum):
    """What `IInt8Calibrator.get_algorithm` gives."""

    LEGACY_CALIBRATION = 0
    ENTROPY_CALIBRATION = 1
    ENTROPY_CALIBRATION_2 = 2
    MINMAX_CALIBRATION = 3


class CalibratorLike(Protocol):
    """What calibration asks of a calibrator."""

    def get_batch_size(self) -> int: ...

    def get_batch(self, names: Sequence[str], /) -> Sequence[Any] | bool | None: ...

    def read_calibration_cache(self) -> Any: ...

    def write_calibration_cache(self, cache: Any, /) -> None: ...

    def get_algorithm(self) -> Any: ...


def is_calibrator(given: object) -> TypeGuard[CalibratorLike]:
    """Whether an object has a calibrator's methods."""
    names = ("get_batch_size", "get_batch", "read_calibration_cache", "write_calibration_cache", "get_algorithm")
    return all(callable(getattr(given, name, None)) for name in names)


class IInt8Calibrator(ABC):
    """Gives batches of sample data, and keeps the cache. Subclasses of TensorRT's four classes run unchanged.

    `get_batch` returns one buffer for each name, or None after the last batch: a NumPy array, or the address of device
    memory as an integer.
    """

    algorithm: ClassVar[CalibrationAlgoType]

    @abstractmethod
    def get_batch_size(self) -> int:
        """The samples in a batch; 1 for a network with dynamic dimensions."""

    @abstractmethod
    def get_batch(self, names: Sequence[str]) -> Sequence[Array | int] | None:
        """The next batch, one buffer for each input; None when there are no more."""

    def read_calibration_cache(self) -> bytes | None:
        """An earlier cache; with one, no batch is asked for."""
        return None

    def write_calibration_cache(self, cache: memoryview) -> None:
        """Keep the cache; called once after calibration."""

    def get_algorithm(self) -> CalibrationAlgoType:
        return self.algorithm


class IInt8EntropyCalibrator2(IInt8Calibrator):
    """Least divergence of the distributions; the one to start with."""

    algorithm = CalibrationAlgoType.ENTROPY_CALIBRATION_2


class IInt8MinMaxCalibrator(IInt8Calibrator):
    """The whole range that was seen."""

    algorithm = CalibrationAlgoType.MINMAX_CALIBRATION


class IInt8EntropyCalibrator(IInt8Calibrator):
    """As IInt8EntropyCalibrator2, on the tensors that are left after fusion."""

    algorithm = CalibrationAlgoType.ENTROPY_CALIBRATION


class IInt8LegacyCalibrator(IInt8Calibrator):
    """A quantile of the magnitudes, on the tensors that are left after fusion.

    Subclasses say the quantile, and the part of it below which no range is cut (`get_regression_cutoff`).
    """

    algorithm = CalibrationAlgoType.LEGACY_CALIBRATION

    @abstractmethod
    def get_quantile(self) -> float: ...

    @abstractmethod
    def get_regression_cutoff(self) -> float: ...

    def read_histogram_cache(self, length: int) -> bytes | None:
        """Histograms of an earlier calibration; none unless a subclass keeps them."""
        return None

    def write_histogram_cache(self, cache: bytes, length: int) -> None:
        """Keep the histograms."""


def method_of_calibrator(calibrator: CalibratorLike) -> Method:
    """How the thresholds for a calibrator are found; the two older algorithms count after fusion
    (tensorrt-features.md#9.7).
    """
    algorithm = CalibrationAlgoType(int(calibrator.get_algorithm()))
    if algorithm is CalibrationAlgoType.LEGACY_CALIBRATION:
        return Method("LegacyCalibration", legacy_threshold(calibrator), before_fusion=False)
    return {
        CalibrationAlgoType.ENTROPY_CALIBRATION: Method("EntropyCalibration", thresholds.entropy, before_fusion=False),
        CalibrationAlgoType.ENTROPY_CALIBRATION_2: Method("EntropyCalibration2", thresholds.entropy),
        CalibrationAlgoType.MINMAX_CALIBRATION: Method("MinMaxCalibration", thresholds.largest),
    }[algorithm]


def legacy_threshold(calibrator: Any) -> thresholds.Threshold:
    """The calibrator's quantile, but no less than its part of the whole range."""
    quantile, cutoff = float(calibrator.get_quantile()), float(calibrator.get_regression_cutoff())

    def threshold(histogram: Histogram) -> float:
        return max(thresholds.percentile(quantile)(histogram), cutoff * histogram.largest)

    return threshold
