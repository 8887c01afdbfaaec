"""Which calibration method fits a network best: its outputs in int8 against those in float32, method by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from mlirt.builder.calibration.calibration import Calibration, MethodError, Samples, as_scale
from mlirt.builder.calibration.histogram import Array
from mlirt.builder.calibration.methods import method_of

COMPARED = ("entropy", "minmax", "percentile", "mse")
RECOMMENDABLE = ("entropy", "minmax")
"""The methods that a recommendation is made between: TensorRT has the same two, with the same caches."""


def with_method(calibration: Calibration, name: str) -> Calibration:
    """The scales that another method finds in the same histograms."""
    method = method_of(name)
    scales = {key: as_scale(method.threshold(one)) for key, one in calibration.histograms.items() if one.elements}
    return Calibration(method.algorithm, scales, channels=calibration.channels)


def compare(calibration: Calibration, samples: Samples, methods: Sequence[str] = COMPARED) -> list[MethodError]:
    """The error of each method on the kept samples."""
    from mlirt.builder.compile import compile as build

    shapes = samples.input_shapes
    exact = build(samples.model, samples.target, input_shapes=shapes)
    wanted = [exact.run(feeds) for feeds in samples.feeds]
    errors: list[MethodError] = []
    for name in methods:
        scales = with_method(calibration, name)
        engine = build(samples.model, samples.target, "int8", input_shapes=shapes, calibration=scales)
        found = [engine.run(feeds) for feeds in samples.feeds]
        worst = max(relative_error([ours], [theirs]) for ours, theirs in zip(found, wanted, strict=True))
        errors.append(MethodError(name, relative_error(found, wanted), worst))
    return errors


def relative_error(found: Sequence[Mapping[str, Array]], wanted: Sequence[Mapping[str, Array]]) -> float:
    """The root of the summed squares of the differences over that of the wanted values; of all floating outputs."""
    difference = total = 0.0
    for ours, theirs in zip(found, wanted, strict=True):
        for name, expected in theirs.items():
            if expected.dtype.kind == "f":
                wide = expected.astype(np.float64)
                difference += float(np.square(ours[name].astype(np.float64) - wide).sum())
                total += float(np.square(wide).sum())
    return float(np.sqrt(difference / total)) if total else 0.0


def recommended(errors: Sequence[MethodError]) -> str:
    """The method that may be recommended whose worst sample loses least."""
    best = min((one for one in errors if one.method in RECOMMENDABLE), key=lambda one: one.worst)
    return best.method
