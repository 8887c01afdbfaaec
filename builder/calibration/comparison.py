"""Which calibration method fits a network best: its outputs in int8 against those in float32, method by method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mlirt.builder.calibration.calibration import Calibration, MethodError, Samples, as_scale
from mlirt.builder.calibration.histogram import Array
from mlirt.builder.calibration.methods import method_of
from mlirt.builder.inner_tensors import known_tensors
from mlirt.builder.model_network import imported
from mlirt.dialects.context import RtContext

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


def tensor_errors(calibration: Calibration, **settings: Any) -> dict[str, float]:
    """The root mean squared difference over the root mean square of each calibrated tensor, in the network's order.

    Both networks are built once more with these tensors as outputs, so a tensor has the error of all layers in front
    of it. `settings` are for the one in int8, as for `mlirt.compile`. Empty for a calibration without samples.
    """
    from mlirt.builder.compile import compile as build

    samples = calibration.samples
    if samples is None:
        return {}
    names = _computed(calibration, samples)
    shapes = samples.input_shapes
    exact = build(samples.model, samples.target, input_shapes=shapes, outputs=names)
    narrow = build(
        samples.model, samples.target, "int8", input_shapes=shapes, calibration=calibration, outputs=names, **settings
    )
    pairs = [(narrow.run(feeds), exact.run(feeds)) for feeds in samples.feeds]
    return {name: _error(pairs, name) for name in names}


def _error(pairs: list[tuple[dict[str, Any], dict[str, Any]]], name: str) -> float:
    return relative_error([{name: found[name]} for found, _ in pairs], [{name: wanted[name]} for _, wanted in pairs])


def _computed(calibration: Calibration, samples: Samples) -> tuple[str, ...]:
    """The calibrated tensors that the network as it is read computes; clean-up makes further ones."""
    module = imported(samples.model, RtContext(), None, samples.input_shapes, None)
    known = known_tensors(module)
    given = samples.feeds[0] if samples.feeds else {}
    return tuple(name for name in calibration.scales if name in known and name not in given)


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
