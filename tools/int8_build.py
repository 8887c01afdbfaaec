"""What rt-exec's INT8 flags mean: a cache is read, or made from sample data; layers are kept in float for a target,
those of half precision as well.
"""

from __future__ import annotations

import warnings
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mlirt.errors import AccuracyWarning, InvalidInputError

if TYPE_CHECKING:
    from mlirt.builder.calibration.calibration import Calibration
    from mlirt.builder.calibration.collection import Progress

Log = Callable[[str, str], None]
Shapes = Mapping[str, Sequence[Sequence[int]]]


def precision_of(arguments: Namespace) -> str:
    """The builder's name for --int8, --fp16, --tf32 and --best."""
    half = arguments.fp16 or arguments.best
    if arguments.int8 or arguments.best:
        return "int8+fp16" if half else "int8"
    return "fp16" if half else "tf32" if arguments.tf32 else "fp32"


def int8_options(arguments: Namespace, profiles: Shapes, progress: Progress, log: Log) -> dict[str, Any]:
    """What `mlirt.compile` takes beside the precision; raises `InvalidInputError` for flags that lack others."""
    precision = precision_of(arguments)
    if "int8" not in precision:
        _refuse_alone(
            arguments, "calib", "calibReport", *(() if precision == "fp16" else ("calibData", "accuracyTarget"))
        )
        if arguments.accuracyTarget is None:
            return {}
        return {"layer_precisions": _kept_in_float(arguments, None, profiles, progress, log)}
    calibration = _calibration(arguments, profiles, progress, log)
    if calibration is None:
        return {}
    options: dict[str, Any] = {"calibration": calibration}
    if arguments.accuracyTarget is not None:
        options["layer_precisions"] = _kept_in_float(arguments, calibration, profiles, progress, log)
    return options


def _refuse_alone(arguments: Namespace, *flags: str) -> None:
    for flag in flags:
        if getattr(arguments, flag) is not None:
            other = " or --fp16" if flag in ("calibData", "accuracyTarget") else ""
            raise InvalidInputError(f"--{flag} is for INT8: add --int8{other}")


def _calibration(arguments: Namespace, profiles: Shapes, progress: Progress, log: Log) -> Calibration | None:
    """The cache where there is one, which is written where there was none; as with trtexec."""
    from mlirt.builder.calibration.calibrate import calibrate
    from mlirt.builder.calibration.calibration import Calibration

    cache = arguments.calib
    if cache is not None and (arguments.calibData is None or Path(cache).is_file()):
        return Calibration.load(cache)
    if arguments.calibData is None:
        if arguments.base.calibration is not None or arguments.base.dynamic_ranges:
            return None  # --config says the ranges
        return _random_calibration(arguments, profiles, progress, log)
    with warnings.catch_warnings():
        if arguments.accuracyTarget is not None:  # what is lost now is not what is lost in the end
            warnings.simplefilter("ignore", AccuracyWarning)
        found = calibrate(
            arguments.onnx,
            arguments.calibData,
            arguments.calibMethod,
            batch_size=_batch_size(profiles, arguments.optShapesCalib),
            target=_target(arguments),
            input_shapes=_calibration_shapes(arguments),
            progress=progress,
        )
    log("I", f"Calibrated {len(found.scales)} tensors with {arguments.calibData} ({found.algorithm})")
    for one in found.errors:
        log("I", f"INT8 with {one.method}: outputs {one.error:.3%} off (worst batch {one.worst:.3%})")
    if cache is not None:
        found.save(cache)
        log("I", f"Saved the calibration cache to {cache}")
    if arguments.calibReport is not None:
        found.report(arguments.calibReport)
        log("I", f"Saved the calibration report to {arguments.calibReport}")
    return found


def _random_calibration(arguments: Namespace, profiles: Shapes, progress: Progress, log: Log) -> Calibration | None:
    """Ranges of random inputs, as trtexec takes them (tensorrt-features.md#30.11); None for a network that quantises
    itself.
    """
    from mlirt.builder.calibration.calibrate import calibrate
    from mlirt.dialects.context import RtContext
    from mlirt.dialects.interpreter import entry_function, input_names
    from mlirt.dialects.tensor_types import dims, element_name, element_of
    from mlirt.frontend.onnx.importer import import_model
    from mlirt.passes.quantization.explicit_networks import has_conversions
    from mlirt.runtime.random_inputs import random_input

    if arguments.onnx.endswith(".mlir"):
        return None
    module = import_model(arguments.onnx, RtContext())
    if has_conversions(module):
        return None
    function = entry_function(module)
    batch: dict[str, Any] = {}
    for seed, (name, value) in enumerate(zip(input_names(function), function.body.block.args, strict=True)):
        shape = (
            profiles[name][1] if name in profiles else [one if isinstance(one, int) else 1 for one in dims(value.type)]
        )
        batch[name] = random_input(element_name(element_of(value.type)), shape, seed)
    log("W", "INT8 without --calib: ranges are those of random inputs, so that outputs are not accurate; times are.")
    return calibrate(arguments.onnx, [batch], "entropy", target=_target(arguments), measure=False, progress=progress)


def _kept_in_float(
    arguments: Namespace, calibration: Calibration | None, profiles: Shapes, progress: Progress, log: Log
) -> dict[str, str]:
    from mlirt.builder.calibration.sensitivity import sensitivity

    if arguments.calibData is None:
        raise InvalidInputError("--accuracyTarget needs samples to measure with: add --calibData=FOLDER")
    found = sensitivity(
        arguments.onnx,
        calibration,
        arguments.calibData,
        precision="fp16" if calibration is None else "int8",
        accuracy_target=arguments.accuracyTarget,
        batch_size=_batch_size(profiles, arguments.optShapesCalib),
        target=_target(arguments),
        input_shapes=_calibration_shapes(arguments),
        progress=progress,
    )
    for line in found.lines():
        log("I", line)
    return found.layer_precisions


def _target(arguments: Namespace) -> str:
    return "cpu" if arguments.target == "reference" else arguments.target


def _calibration_shapes(arguments: Namespace) -> dict[str, tuple[int, ...]]:
    """The shapes of the inputs while the network is calibrated: the usual ones, as with TensorRT
    (tensorrt-features.md#9.18).
    """
    least, usual, most = (getattr(arguments, f"{which}ShapesCalib") for which in ("min", "opt", "max"))
    for name, shape in usual.items():
        for flag, other in (("min", least.get(name)), ("max", most.get(name))):
            if other is None or len(other) != len(shape):
                raise InvalidInputError(
                    f"--{flag}ShapesCalib: expected {len(shape)} dimensions for input {name!r}, as --optShapesCalib has"
                )
    return dict(usual)


def _batch_size(profiles: Shapes, calibrated: Mapping[str, Sequence[int]]) -> int:
    """The usual first dimension of the inputs, while calibrating where that is told; 1 where nobody says."""
    usual = [*calibrated.values(), *(shapes[1] for shapes in profiles.values())]
    return next((shape[0] for shape in usual if len(shape)), 1)
