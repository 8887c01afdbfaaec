"""The ways to find thresholds by the names that users give them, each with the name that its cache bears."""

from __future__ import annotations

from dataclasses import dataclass

from mlirt.builder.calibration import thresholds
from mlirt.builder.calibration.thresholds import Threshold
from mlirt.errors import InvalidInputError


@dataclass(frozen=True)
class Method:
    """`before_fusion` is TensorRT's choice for its calibrator of this algorithm (tensorrt-features.md#9.7)."""

    algorithm: str
    threshold: Threshold
    before_fusion: bool = True


def method_of(name: str, percentile: float = 0.9999) -> Method:
    """entropy, minmax, percentile, mse or legacy; raises `InvalidInputError` for others."""
    if not 0 < percentile <= 1:
        raise InvalidInputError(f"percentile={percentile}: expected a part of all elements, such as 0.9999")
    methods = {
        "entropy": Method("EntropyCalibration2", thresholds.entropy),
        "minmax": Method("MinMaxCalibration", thresholds.largest),
        "percentile": Method("PercentileCalibration", thresholds.percentile(percentile)),
        "mse": Method("MeanSquaredErrorCalibration", thresholds.mean_squared_error),
        "legacy": Method("LegacyCalibration", thresholds.percentile(percentile), before_fusion=False),
    }
    if name not in methods:
        raise InvalidInputError(f"calibration method {name!r} is not known; expected one of {', '.join(methods)}")
    return methods[name]
