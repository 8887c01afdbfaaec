"""Measures what calibration methods lose on samples, chooses the one that loses least, and warns where that is much."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace

from mlirt.builder.build import BuildOptions, build
from mlirt.builder.calibration.calibration import Calibration
from mlirt.builder.calibration.collection import Collection
from mlirt.builder.calibration.comparison import COMPARED, RECOMMENDABLE, MethodError, relative_error, with_method
from mlirt.builder.calibration.histogram import Array
from mlirt.builder.separate_context import apart
from mlirt.errors import AccuracyWarning
from mlirt.passes.pipeline import run_passes
from mlirt.passes.quantization.explicit_networks import is_explicit
from mlirt.passes.quantization.tensor_ranges import set_ranges

WARN_ABOVE = 0.05
"""The relative error of the outputs in int8 beyond which a calibration warns."""
_MAX_ERROR = 0.01
_SAMPLES = 8  # batches that methods are measured on
_NAMED = 3  # layers that a warning names

Feeds = Mapping[str, Array]


def chosen(collection: Collection, found: Calibration, kept: Sequence[Feeds]) -> Calibration:
    """Of the methods that find thresholds in the same histograms, that with the least error of the worst sample.

    The last two are built only where neither of the first is good enough: each takes a build.
    """
    errors = measured(collection, {name: with_method(found, name) for name in RECOMMENDABLE}, kept)
    if not errors:
        return found
    if min(one.worst for one in errors) > _MAX_ERROR:
        others = [name for name in COMPARED if name not in RECOMMENDABLE]
        errors += measured(collection, {name: with_method(found, name) for name in others}, kept)
    best = min(errors, key=lambda one: one.worst)  # the first of those that are equal
    other = with_method(found, best.method)
    return replace(found, algorithm=other.algorithm, scales=other.scales, errors=errors, error=best)


def checked(collection: Collection, found: Calibration, method: str, kept: Sequence[Feeds]) -> Calibration:
    """The calibration that a user's method found, with the error that it makes."""
    errors = measured(collection, {method: found}, kept)
    return replace(found, errors=errors, error=errors[0]) if errors else found


def measured(
    collection: Collection, calibrations: Mapping[str, Calibration], kept: Sequence[Feeds]
) -> list[MethodError]:
    """The error of each calibration on the first few batches; none for a network whose outputs are no floats.

    The exact outputs are those of the engine that was observed; only the engines in int8 are built for this, whose
    kernels the build of the network will need too.
    """
    if is_explicit(collection.module):
        return []
    feeds = kept[:_SAMPLES]
    exact = [collection.outputs_of(one) for one in feeds]
    if not any(array.dtype.kind == "f" and array.any() for array in exact[0].values()):
        return []
    errors: list[MethodError] = []
    for name, calibration in calibrations.items():
        if collection.progress is not None:
            collection.progress(f"measuring {name}", len(errors), len(calibrations))
        outputs = _in_int8(collection, calibration, feeds)
        worst = max(relative_error([ours], [theirs]) for ours, theirs in zip(outputs, exact, strict=True))
        errors.append(MethodError(name, relative_error(outputs, exact), worst))
    return errors


def _in_int8(collection: Collection, calibration: Calibration, feeds: Sequence[Feeds]) -> list[dict[str, Array]]:
    module, ctx = collection.module.clone(), apart(collection.ctx)
    set_ranges(module, calibration.ranges, calibration.channels)
    run_passes(module, ctx, "insert-scales")  # the end of the phase that the network has been through
    options = BuildOptions("int8", name="measurement", first="quantization", temporary=True)
    engine = build(module, ctx, collection.target, options)
    return [engine.run(one) for one in feeds]


def warn_of_error(collection: Collection, found: Calibration, kept: Sequence[Feeds]) -> None:
    """Say what a network loses in int8 where that is much, which layers lose it, and what to do."""
    if found.error is None or found.error.error <= WARN_ABOVE:
        return
    text = f"INT8: {found.loss}, {_responsible(collection, found, kept)}; {_advice(found)}"
    warnings.warn(text, AccuracyWarning, stacklevel=3)


def _responsible(collection: Collection, found: Calibration, kept: Sequence[Feeds]) -> str:
    from mlirt.builder.calibration.sensitivity import losses_of_layers

    module, ctx = collection.module.clone(), apart(collection.ctx)
    set_ranges(module, found.ranges, found.channels)
    losses = losses_of_layers(module, ctx, collection.target, kept[:1], collection.progress)
    worst = [f"{name!r} ({loss:.1%} alone)" for name, loss in list(losses.items())[:_NAMED] if loss > 0]
    return f"most by {', '.join(worst)}" if worst else "by no layer alone"


def _advice(found: Calibration) -> str:
    tried = f"no method does better ({', '.join(f'{one.method} {one.error:.1%}' for one in found.errors)})"
    method = tried if len(found.errors) > 1 else "let the method be chosen (method='auto', --calibMethod=auto)"
    return f"{method}, give more samples, or keep layers in float (mlirt.sensitivity, --accuracyTarget=0.99)"
